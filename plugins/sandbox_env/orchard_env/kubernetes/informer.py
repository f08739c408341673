"""All pods of one selection, kept up to date by one LIST and one WATCH."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

from orchard_core import OrchardError
from orchard_env.kubernetes.api import ClusterApi
from orchard_env.kubernetes.pods import PodView
from orchard_env.kubernetes.resources import Manifest, Selector

Until = Callable[[PodView | None], bool]
"""True when what is waited for is there. None: no such pod (not yet, or no longer). It may raise: the waiter
gets that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodChange:
    """What happened to one pod."""

    name: str
    """Its name."""
    before: PodView | None
    """None: it is new."""
    after: PodView | None
    """None: it is gone."""


class PodInformer:
    """`async with PodInformer(api, selector) as pods:` waits for nothing: `await pods.wait_synced()` does."""

    def __init__(
        self, api: ClusterApi, selector: Selector, *, namespace: str | None = None, silent_s: float = 60.0
    ) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        raise NotImplementedError

    async def __aexit__(self, *_: object) -> None:
        raise NotImplementedError

    async def start(self) -> None:
        """Begin to list and watch, behind the caller's back, until `close`."""
        raise NotImplementedError

    async def close(self) -> None:
        """Stop; waiters get SandboxUnavailable."""
        raise NotImplementedError

    async def wait_synced(self, timeout: float) -> None:
        """Until a first LIST succeeded. Raises the last error of the LIST when the time is up."""
        raise NotImplementedError

    @property
    def synced(self) -> bool:
        """A LIST has succeeded, at least once: what is missing here is missing there (up to `stale_s`)."""
        raise NotImplementedError

    @property
    def last_error(self) -> OrchardError | None:
        """Why the server does not tell at present; None while it does."""
        raise NotImplementedError

    @property
    def stale_s(self) -> float:
        """Seconds since the server last said anything (an event or a bookmark counts); inf before the first."""
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def __iter__(self) -> Iterator[PodView]:
        """A moment's picture: changes meanwhile do no harm."""
        raise NotImplementedError

    def get(self, name: str) -> PodView | None:
        """As last told."""
        raise NotImplementedError

    def learn(self, manifest: Manifest) -> PodView:
        """Take in a pod that the caller just created, so that it is there before the watch tells of it."""
        raise NotImplementedError

    async def until(self, name: str, predicate: Until, timeout: float) -> PodView | None:
        """The pod as it is when `predicate` holds of it. Raises TimeoutError, and what the predicate raises."""
        raise NotImplementedError

    def nudge(self, name: str) -> None:
        """Let the waiters for this pod look again (something else than the pod changed)."""
        raise NotImplementedError

    def subscribe(self, told: Callable[[PodChange], None]) -> Callable[[], None]:
        """`told` hears of each change, in order; it must be quick and never raise. Gives what ends it."""
        raise NotImplementedError
