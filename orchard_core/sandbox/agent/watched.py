"""Calls to agents as somebody who traces them sees them. Nobody does unless asked to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Protocol


class WatchedCall(Protocol):
    """One call that is being made."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Sent with it, such as `traceparent`."""

    def answered(self, status: int) -> None:
        """The agent's answer has begun."""


CallWatcher = Callable[[str, str], AbstractContextManager[WatchedCall]]
"""Given the method and the path, without its query; entered for as long as the call goes on."""

_WATCHER: ContextVar[CallWatcher | None] = ContextVar("agent_call_watcher", default=None)


class _Unwatched:
    """A call that nobody watches; one object for all of them."""

    headers: Mapping[str, str] = MappingProxyType({})

    def answered(self, status: int) -> None:
        pass

    def __enter__(self) -> WatchedCall:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


_UNWATCHED = _Unwatched()


def watch_agent_calls(watcher: CallWatcher | None) -> None:
    """Watch the calls of this task, and of those that it starts from now on; None: nobody does."""
    _WATCHER.set(watcher)


def watched_call(method: str, target: str) -> AbstractContextManager[WatchedCall]:
    """To be entered for one call, `target` being its path and query."""
    watcher = _WATCHER.get()
    return _UNWATCHED if watcher is None else watcher(method, target.partition("?")[0])
