"""A dialect for upstreams that speak only chat: requests go out as chat, answers come back translated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import TracebackType

from orchard_core.errors import ModelReplyMalformed
from orchard_core.gateway.chat.codec import ChatCodec
from orchard_core.gateway.chat.stream import ChatAssembler
from orchard_core.gateway.contract import UpstreamReply
from orchard_core.gateway.conversation import Conversation
from orchard_core.gateway.dialect import (
    Answer,
    Assembler,
    DialectCodec,
    EventTranslator,
    Request,
    Translation,
)
from orchard_core.gateway.faults import Fault, redact
from orchard_core.types.model import Dialect, Usage


class TranslatingCodec:
    """Chat towards the upstream and towards the record, `native`'s dialect towards the harness."""

    def __init__(self, native: DialectCodec, translation: Translation, chat: ChatCodec) -> None:
        self._native = native
        self._translation = translation
        self._chat = chat

    @property
    def dialect(self) -> Dialect:
        """What the harness speaks."""
        return self._native.dialect

    def request(self, body: bytes, conversation: Conversation) -> Request:
        """Translate and read. Raises JsonFault."""
        translated = self._translation.request(body, conversation)
        request = self._chat.request(translated.body, conversation)
        request.dialect = self.dialect
        request.dropped, request.notes = _counted(translated.dropped), translated.notes
        return request

    def reply(self, body: bytes) -> Answer:
        """Read the upstream's chat completion. Raises ModelReplyMalformed."""
        return self._chat.reply(body)

    def outgoing(self, body: bytes, request: Request) -> bytes:
        """The completion as the harness gets it. Raises ModelReplyMalformed."""
        with _MALFORMED:
            return self._translation.reply(body, request.notes)

    def assembler(self, request: Request) -> Assembler:
        """For one streamed answer."""
        chat = ChatAssembler(request.fields, usage_wanted=True)
        return _TranslatingAssembler(chat, self._translation.events(request.notes))

    def chunks(self, reply: UpstreamReply) -> Sequence[bytes]:
        """A whole chat completion as chat chunks. Raises ModelReplyMalformed."""
        return self._chat.chunks(reply)

    def from_message(self, message: str, *, model: str, finish_reason: str, usage: Usage) -> bytes:
        """A whole chat completion around one chat message."""
        return self._chat.from_message(message, model=model, finish_reason=finish_reason, usage=usage)

    def fault(self, fault: Fault) -> bytes:
        """In the harness's dialect."""
        return self._native.fault(fault)


class _TranslatingAssembler:
    """Gathers the chat answer, and hands on what the translation makes of it."""

    def __init__(self, chat: ChatAssembler, events: EventTranslator) -> None:
        self._chat = chat
        self._events = events

    def feed(self, payload: bytes) -> bytes | None:
        """One chat chunk in, framed events of the other dialect out."""
        passed = self._chat.take(payload)
        with _MALFORMED:
            return None if passed is None else self._events.feed(passed)

    def end(self) -> bytes:
        """The other dialect's last events. Raises ModelReplyMalformed."""
        with _MALFORMED:
            return self._events.end()

    def failed(self, fault: Fault) -> bytes:
        """In the other dialect."""
        return self._events.failed(fault)

    def answer(self) -> Answer:
        """The chat answer so far."""
        return self._chat.answer()


class _Malformed:
    """Around a translation of what the model server sent: what has another shape is its fault."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, LookupError | TypeError | ValueError | AttributeError | RecursionError):
            raise ModelReplyMalformed(
                f"the model server's answer is not a chat completion: {type(error).__name__}: {error}",
                hint="check that the model's base URL ends in the API's root, such as /v1",
            ) from None


_MALFORMED = _Malformed()

_NAMES, _NAME = 64, 80
"""Names of dropped fields that are recorded at most, and characters of each: a client chooses them."""


def _counted(dropped: Mapping[str, int]) -> dict[str, int]:
    """Fit to be stored."""
    counts: Counter[str] = Counter()
    for name, count in dropped.items():
        fit = redact(name)[:_NAME]
        counts[fit if fit in counts or len(counts) < _NAMES else "others"] += count
    return dict(counts)
