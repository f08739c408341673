"""The responses dialect."""

from __future__ import annotations

from collections.abc import Sequence

from orchard_core.gateway.contract import UpstreamReply
from orchard_core.gateway.conversation import Conversation
from orchard_core.gateway.dialect import Answer, Assembler, Request
from orchard_core.gateway.faults import Fault, openai_body
from orchard_core.gateway.json_text import dumps
from orchard_core.gateway.responses.reply import make_events, make_reply, read_reply
from orchard_core.gateway.responses.request import read_request
from orchard_core.gateway.responses.stream import ResponsesAssembler
from orchard_core.types.model import Dialect, Usage


class ResponsesCodec:
    """Reads and writes OpenAI responses, for upstreams that speak it themselves."""

    @property
    def dialect(self) -> Dialect:
        """Responses."""
        return Dialect.RESPONSES

    def request(self, body: bytes, conversation: Conversation) -> Request:
        """Read a request. Raises JsonFault."""
        return read_request(body, conversation)

    def reply(self, body: bytes) -> Answer:
        """Read a whole answer. Raises ModelError."""
        return read_reply(body)

    def outgoing(self, body: bytes, request: Request) -> bytes:
        """Untouched."""
        return body

    def assembler(self, request: Request) -> Assembler:
        """For one streamed answer."""
        return ResponsesAssembler()

    def chunks(self, reply: UpstreamReply) -> Sequence[bytes]:
        """A whole answer as event data. Raises ModelReplyMalformed."""
        events = make_events(reply.body)
        return [dumps({**event, "sequence_number": number}) for number, event in enumerate(events)]

    def from_message(self, message: str, *, model: str, finish_reason: str, usage: Usage) -> bytes:
        """A whole answer around one message."""
        return make_reply(message, model=model, finish_reason=finish_reason, usage=usage)

    def fault(self, fault: Fault) -> bytes:
        """OpenAI's shape."""
        return openai_body(fault)
