"""One attempt at an upstream, bounded in time; whatever it raises leaves as a ModelError."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from time import monotonic
from types import TracebackType

from orchard_core.errors import ModelError, ModelTimeout
from orchard_core.gateway.contract import Upstream, UpstreamReply, UpstreamRequest
from orchard_core.gateway.deadline import Deadline
from orchard_core.gateway.dialect import Assembler


async def complete(upstream: Upstream, request: UpstreamRequest) -> UpstreamReply:
    """The whole answer. Raises ModelError."""
    with PluginBorder(request.timeout_s), Deadline(request.timeout_s):
        return await upstream.complete(request)


@dataclass(slots=True, kw_only=True)
class Stream:
    """An answer that has begun to come."""

    request: UpstreamRequest
    """What was asked."""
    source: AsyncIterator[bytes]
    """The upstream's events."""
    assembler: Assembler
    """What has come so far."""
    deadline: float
    """When it must be over, in the loop's time."""
    first: bytes | None
    """What the harness gets first, framed; None: there was nothing."""
    first_s: float
    """From sending to the first event, seconds."""

    async def next(self) -> bytes | None:
        """What the harness gets next, framed; None at the end. Raises ModelError."""
        return await _next(self.request, self.source, self.assembler, self.deadline)

    async def close(self) -> None:
        """End the upstream call."""
        await _close(self.source)


async def start(upstream: Upstream, request: UpstreamRequest, assembler: Assembler) -> Stream:
    """Send, and wait for the first event. Raises ModelError."""
    began = monotonic()
    deadline = asyncio.get_running_loop().time() + request.timeout_s
    with PluginBorder(request.timeout_s):
        source = upstream.stream(request)
    try:
        first = await _next(request, source, assembler, deadline)
    except BaseException:
        await _close(source)
        raise
    return Stream(
        request=request,
        source=source,
        assembler=assembler,
        deadline=deadline,
        first=first,
        first_s=monotonic() - began,
    )


async def _next(
    request: UpstreamRequest, source: AsyncIterator[bytes], assembler: Assembler, deadline: float
) -> bytes | None:
    with PluginBorder(request.timeout_s):
        async with asyncio.timeout_at(deadline):
            async for payload in source:
                passed = assembler.feed(payload)
                if passed:
                    return passed
    return None


async def _close(source: AsyncIterator[bytes]) -> None:
    aclose = getattr(source, "aclose", None)  # iterators that are not generators have none
    if aclose is not None:
        await aclose()


class PluginBorder:
    """Around the code of a model plugin or a hook: only ModelError comes out."""

    __slots__ = ("_limit_s",)

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, ModelError) or not isinstance(error, Exception):
            return
        if isinstance(error, TimeoutError):
            raise ModelTimeout(
                f"the model server did not finish its answer within {self._limit_s:g} s",
                limit_s=self._limit_s,
                hint="give the model a longer timeout_s, or ask for fewer tokens",
            ) from None
        # Border: an upstream is a plugin, and its bugs must be recorded like any failed call.
        raise ModelError(
            f"the model plugin (or a hook) raised {type(error).__name__}: {error}",
            hint="this is a fault of that code, not of the model: report it to its authors",
        ) from error
