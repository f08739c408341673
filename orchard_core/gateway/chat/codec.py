"""The chat completions dialect."""

from __future__ import annotations

from collections.abc import Sequence

from orchard_core.gateway.chat.reply import make_chunks, make_reply, read_reply
from orchard_core.gateway.chat.request import read_request
from orchard_core.gateway.chat.stream import ChatAssembler
from orchard_core.gateway.contract import UpstreamReply
from orchard_core.gateway.conversation import Conversation
from orchard_core.gateway.dialect import Answer, Assembler, Request
from orchard_core.gateway.faults import Fault, openai_body
from orchard_core.types.model import Dialect, Usage


class ChatCodec:
    """Reads and writes OpenAI chat completions."""

    @property
    def dialect(self) -> Dialect:
        """Chat."""
        return Dialect.CHAT

    def request(self, body: bytes, conversation: Conversation) -> Request:
        """Read a request. Raises JsonFault."""
        return read_request(body, conversation)

    def reply(self, body: bytes) -> Answer:
        """Read a whole answer. Raises ModelReplyMalformed."""
        return read_reply(body)

    def outgoing(self, body: bytes, request: Request) -> bytes:
        """Untouched."""
        return body

    def assembler(self, request: Request) -> Assembler:
        """For one streamed answer."""
        return ChatAssembler(request.fields, usage_wanted=request.usage_wanted)

    def chunks(self, reply: UpstreamReply) -> Sequence[bytes]:
        """A whole answer as event data. Raises ModelReplyMalformed."""
        return make_chunks(reply.body)

    def from_message(self, message: str, *, model: str, finish_reason: str, usage: Usage) -> bytes:
        """A whole answer around one message."""
        return make_reply(message, model=model, finish_reason=finish_reason, usage=usage)

    def fault(self, fault: Fault) -> bytes:
        """OpenAI's shape."""
        return openai_body(fault)
