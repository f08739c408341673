"""One call from arrival to record: held, queued, sent, repeated, read, recorded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from time import monotonic, time
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from orchard_core.errors import ModelError, ModelRateLimited, ModelReplyMalformed, ModelUnavailable
from orchard_core.gateway import attempt
from orchard_core.gateway.answers import read_reply, wrapped
from orchard_core.gateway.contract import UpstreamReply, UpstreamRequest
from orchard_core.gateway.dialect import Answer, Assembler, DialectCodec, Request
from orchard_core.gateway.faults import Fault, redact
from orchard_core.gateway.record import CallRecord
from orchard_core.gateway.token_in import prompt_ids
from orchard_core.types.model import CallError, Retry

if TYPE_CHECKING:
    from orchard_core.gateway.session import Session

T = TypeVar("T")


class Call:
    """One request of a session, served by the task that makes it. Use `whole` or `pieces`, once."""

    def __init__(self, session: Session, request: Request, codec: DialectCodec, index: int) -> None:
        conversation = session.conversation
        self.session = session
        self.request = request
        self.codec = codec
        self.record = CallRecord(
            index=index,
            dialect=request.dialect,
            wire=request.wire,
            dropped=request.dropped,
            streamed=request.stream,
            params=request.params,
            refs=conversation.refs(request.heard),
            tools=None if request.tools is None else conversation.store_blob(request.tools),
            started_at=time(),
        )
        self.ended_by = ""
        self.done = asyncio.Event()
        self._assembler: Assembler | None = None
        self._arrived = monotonic()
        self._task = asyncio.current_task()

    def end(self, by: str) -> None:
        """Stop the call because of `by`, said in words: its client left, or its session closes."""
        if not self.ended_by and self._task is not None and not self.done.is_set():
            self.ended_by = by
            self._task.cancel()

    async def whole(self) -> bytes:
        """The answer's body. Raises ModelError."""
        with _Recorded(self):
            await self._held()
            reply, answer = await self._repeated(self._complete)
            self.session.slots.release()
            self.session.slots.succeeded()
            self._take(reply, answer)
            with attempt.PluginBorder(self.session.call_timeout_s):
                return self.codec.outgoing(reply.body, self.request)

    async def pieces(self) -> AsyncGenerator[bytes]:
        """The answer's events, framed, but for those that end it. Raises ModelError."""
        with _Recorded(self):
            await self._held()
            whole_only = self.session.token_upstream is not None
            # Closed here and not by the collector: what came so far must be known before it is recorded.
            async with aclosing(self._whole_in_pieces() if whole_only else self._streamed()) as payloads:
                async for payload in payloads:
                    yield payload

    def ending(self) -> bytes:
        """The framed events that end a stream whose pieces have all been sent."""
        return b"" if self._assembler is None else self._assembler.end()

    def failing(self, fault: Fault) -> bytes:
        """The framed event that ends a stream with an error, once pieces have been sent."""
        return b"" if self._assembler is None else self._assembler.failed(fault)

    async def _whole_in_pieces(self) -> AsyncGenerator[bytes]:
        """For upstreams that sample a whole answer at once."""
        reply, answer = await self._repeated(self._complete)
        self.session.slots.release()
        self.session.slots.succeeded()
        self._take(reply, answer)
        assembler = self._assembler = self.codec.assembler(self.request)
        for payload in self.codec.chunks(reply):
            passed = assembler.feed(payload)
            if passed:
                yield passed

    async def _streamed(self) -> AsyncGenerator[bytes]:
        slots = self.session.slots
        stream = await self._repeated(self._start)
        self._assembler = stream.assembler
        self.record.first_token_s = stream.first_s
        try:
            payload = stream.first
            while payload is not None:
                yield payload
                payload = await stream.next()
            if _known(stream.assembler).finish_reason is None:
                raise ModelReplyMalformed(
                    "the model server's stream ended in the middle of the answer",
                    hint="the server died or a proxy cut the connection: try again",
                )
            slots.succeeded()
        finally:
            self.record.answer = _known(stream.assembler)
            slots.release()
            await stream.close()

    async def _complete(self) -> tuple[UpstreamReply, Answer]:
        with attempt.PluginBorder(self.session.call_timeout_s):
            return await self._completed()

    async def _completed(self) -> tuple[UpstreamReply, Answer]:
        request = self._upstream_request()
        reply = await attempt.complete(self.session.upstream, request)
        upstream = self.session.token_upstream
        if upstream is not None:
            reply = wrapped(reply, request, upstream.renderer, self.codec, self.request.model)
        return reply, read_reply(self.codec, reply)

    async def _start(self) -> attempt.Stream:
        assembler = self.codec.assembler(self.request)
        return await attempt.start(self.session.upstream, self._upstream_request(), assembler)

    def _upstream_request(self) -> UpstreamRequest:
        upstream, prompt = self.session.token_upstream, None
        if upstream is not None:
            prompt = prompt_ids(self.request, upstream.renderer)
        return UpstreamRequest(
            dialect=self.request.wire,
            body=self.request.body,
            index=self.record.index,
            timeout_s=self.session.call_timeout_s,
            headers=self.request.headers,
            prompt_tokens=prompt,
        )

    def _take(self, reply: UpstreamReply, answer: Answer) -> None:
        self.record.answer = answer
        self.record.versions = reply.versions

    async def _held(self) -> None:
        """The hook may hold the call, while a sandbox is snapshotted for one."""
        hook = self.session.before_call
        if hook is not None:
            with self._waiting(), attempt.PluginBorder(self.session.call_timeout_s):
                await hook(self.session.id, self.record.index)

    async def _repeated(self, send: Callable[[], Awaitable[T]]) -> T:
        """Attempts until one succeeds; its slot is still held then. Raises ModelError."""
        slots = self.session.slots
        while True:
            await self._slot()
            began = monotonic()
            try:
                return await send()
            except (ModelRateLimited, ModelUnavailable) as error:
                pause = self._pause(error, began)
                slots.release()
                if pause is None:
                    raise
            except BaseException:
                slots.release()
                raise
            with self._waiting():
                await asyncio.sleep(pause)

    async def _slot(self) -> None:
        slots = self.session.slots
        if slots.free:
            await slots.acquire()
            return
        with self._waiting():
            await slots.acquire()

    def _pause(self, error: ModelRateLimited | ModelUnavailable, began: float) -> float | None:
        """Note the failed attempt; seconds to rest, None when it was the last."""
        if isinstance(error, ModelRateLimited):
            self.session.slots.throttled(began, error.retry_after_s)
        pause = self.session.retry.pause(len(self.record.retries) + 1, error.retry_after_s)
        if pause is not None:
            reason = redact(f"{type(error).__name__}: {error.message}")
            self.record.retries.append(Retry(reason=reason[:500], waited_s=pause))
        return pause

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        began = monotonic()
        try:
            with self.session.waits.waiting():
                yield
        finally:
            self.record.waited_s += monotonic() - began

    def over(self, error: BaseException | None) -> None:
        """Record it; `error` is what ended it before its time."""
        failure = error if isinstance(error, ModelError) else None
        if failure is not None:
            self.record.error = CallError(kind=type(failure).__name__, message=redact(str(failure)))
        # A client may leave as soon as it saw the last piece: that answer is complete.
        elif isinstance(error, _ENDED) and self.record.answer.finish_reason is None:
            self.record.error = CallError(kind="Cancelled", message=self.ended_by or LEFT)
        self.record.total_s = monotonic() - self._arrived
        try:
            self.session.finished(self, failure)
        finally:
            self.done.set()


def _known(assembler: Assembler) -> Answer:
    """What has come; nothing of an answer that is nested deeper than it can be written."""
    try:
        return assembler.answer()
    except RecursionError:
        return Answer()


class _Recorded:
    """Around all that a call does: it is recorded however that ends."""

    __slots__ = ("_call",)

    def __init__(self, call: Call) -> None:
        self._call = call

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._call.over(error)


LEFT = "the client closed the connection before the answer ended"
"""Why a call ended whose client left."""

_ENDED = (asyncio.CancelledError, GeneratorExit)
