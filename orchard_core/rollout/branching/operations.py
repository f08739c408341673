"""What a harness and a task did in a sandbox: recorded in one pass, answered from that record in others."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Sequence,
)
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, TypeVar

from orchard_core.errors import SandboxGone
from orchard_core.types.sandbox import ExecResult

T = TypeVar("T")
KEPT_BYTES = 256 << 20
"""Results kept of one rollout's operations; beyond it nothing later is restored."""

_within_tool: ContextVar[bool] = ContextVar("orchard_within_tool", default=False)


@dataclass(slots=True, eq=False)
class Operation:
    """One operation, from its beginning."""

    key: str = ""
    """What was done, and to what; empty while it goes on."""
    result: Any = None
    """What it gave."""
    error: Exception | None = None
    """What it raised instead."""


class Fed:
    """Data on its way into a sandbox, hashed as it passes."""

    def __init__(self, data: bytes | AsyncIterable[bytes] | None) -> None:
        self._hash = hashlib.sha256(data if isinstance(data, bytes) else b"")
        self._source = None if data is None or isinstance(data, bytes) else data
        self.data = data if self._source is None else self._passed(self._source)
        """To be handed on."""

    async def _passed(self, source: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
        async for piece in source:
            self._hash.update(piece)
            yield piece

    async def drain(self) -> None:
        """Read all of it, where it goes nowhere."""
        if self._source is not None:
            async for piece in self._source:
                self._hash.update(piece)

    @property
    def digest(self) -> str:
        """Hash of what has passed."""
        return self._hash.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Doing:
    """An operation about to be done."""

    what: Sequence[object]
    """Its name and arguments, as far as they decide its result."""
    fed: Fed | None = None
    """Data it takes in."""

    @property
    def key(self) -> str:
        """Equal for equal operations; known once the data has passed."""
        parts = [*self.what, self.fed.digest if self.fed else ""]
        return json.dumps(parts, sort_keys=True, default=str)

    def __str__(self) -> str:
        return json.dumps(list(self.what), default=str)[:200]


class OperationLog(Protocol):
    """What stands between a harness and its sandbox."""

    async def once(self, doing: Doing, live: Callable[[], Awaitable[T]]) -> T:
        """Do it, or give what it once gave. Raises what it raises."""

    def pieces(self, doing: Doing, live: Callable[[], AsyncIterator[bytes]]) -> AsyncIterator[bytes]:
        """The same for what comes in pieces."""

    def beyond(self, what: str) -> None:
        """What follows leaves something behind that no log holds, such as a process."""


class Recorder:
    """Does everything, and keeps what came of it."""

    def __init__(self, *, kept_bytes: int = KEPT_BYTES) -> None:
        self.operations: list[Operation] = []
        """In the order they were begun."""
        self.in_flight = 0
        """Operations that are not over."""
        self.lost = ""
        """Why a state from now on cannot be restored; empty: it can."""
        self._kept_bytes = self._left = kept_bytes

    async def once(self, doing: Doing, live: Callable[[], Awaitable[T]]) -> T:
        """See OperationLog."""
        if _within_tool.get():
            return await live()
        with self._operation(doing) as operation:
            result = await live()
            operation.result = result
            self._keep(result)
        return result

    async def pieces(self, doing: Doing, live: Callable[[], AsyncIterator[bytes]]) -> AsyncGenerator[bytes]:
        """See OperationLog."""
        if _within_tool.get():
            async for piece in live():
                yield piece
            return
        with self._operation(doing) as operation:
            operation.result = []
            async for piece in live():
                self._keep(piece)
                if not self.lost:
                    operation.result.append(piece)
                yield piece

    def beyond(self, what: str) -> None:
        """See OperationLog."""
        self.lost = self.lost or what

    @contextmanager
    def _operation(self, doing: Doing) -> Iterator[Operation]:
        operation = Operation()
        self.operations.append(operation)
        self.in_flight += 1
        try:
            yield operation
        except Exception as error:
            operation.error = error
            raise
        except GeneratorExit:  # the reader had enough, as it will again
            raise
        except BaseException:
            self.beyond(f"{doing} was cut off")
            raise
        finally:
            operation.key = doing.key
            self.in_flight -= 1

    def _keep(self, result: object) -> None:
        if isinstance(result, ExecResult):
            self._left -= len(result.stdout) + len(result.stderr)
        elif isinstance(result, bytes):
            self._left -= len(result)
        if self._left < 0:
            self.beyond(f"its operations gave more than {self._kept_bytes:,} bytes")


class Answerer:
    """Gives what operations once gave, each as often as it was done, until it goes live.

    An operation that is not in the record, and one in it that is not repeated by then, is a difference.
    """

    def __init__(self, operations: Sequence[Operation], note: Callable[[str], None]) -> None:
        self._note = note
        self._left: dict[str, deque[Operation]] = {}
        for operation in operations:
            self._left.setdefault(operation.key, deque()).append(operation)
        self.live = False
        """From here on everything is done."""

    def go_live(self) -> None:
        """Up to here everything was as recorded. Raises SandboxGone when an operation was not repeated."""
        left = [key for key, waiting in self._left.items() if waiting]
        if left:
            self._differs(f"{len(left)} recorded operations were not repeated, such as {left[0][:200]}")
        self.live = True

    async def once(self, doing: Doing, live: Callable[[], Awaitable[T]]) -> T:
        """See OperationLog."""
        if self.live:
            return await live()
        operation = await self._recorded(doing)
        if operation.error is not None:
            raise operation.error
        result: T = operation.result
        return result

    async def pieces(self, doing: Doing, live: Callable[[], AsyncIterator[bytes]]) -> AsyncGenerator[bytes]:
        """See OperationLog."""
        if self.live:
            async for piece in live():
                yield piece
            return
        operation = await self._recorded(doing)
        for piece in operation.result or ():
            yield piece
        if operation.error is not None:
            raise operation.error

    def beyond(self, what: str) -> None:
        """See OperationLog."""
        if not self.live:
            self._differs(f"it was not recorded that {what}")

    async def _recorded(self, doing: Doing) -> Operation:
        if doing.fed is not None:
            await doing.fed.drain()
        waiting = self._left.get(doing.key)
        if not waiting:
            self._differs(f"an operation was not recorded: {doing}")
        return waiting.popleft()

    def _differs(self, how: str) -> NoReturn:
        self._note(how)
        raise SandboxGone(f"the replayed rollout differs: {how}")


@contextmanager
def within_tool() -> Iterator[None]:
    """What is done in a sandbox within a task's tool is part of that tool's result."""
    token = _within_tool.set(True)
    try:
        yield
    finally:
        _within_tool.reset(token)
