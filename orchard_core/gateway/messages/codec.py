"""The messages dialect, for upstreams that speak it themselves."""

from __future__ import annotations

from collections.abc import Sequence

from orchard_core.gateway.contract import UpstreamReply
from orchard_core.gateway.conversation import Conversation
from orchard_core.gateway.dialect import Answer, Assembler, Request
from orchard_core.gateway.faults import Fault
from orchard_core.gateway.messages.events import whole_as_data
from orchard_core.gateway.messages.faults import messages_fault
from orchard_core.gateway.messages.reply import make_reply, read_reply
from orchard_core.gateway.messages.request import read_request
from orchard_core.gateway.messages.stream import MessagesAssembler
from orchard_core.types.model import Dialect, Usage


class MessagesCodec:
    """Reads and writes Anthropic messages; bodies pass untouched."""

    @property
    def dialect(self) -> Dialect:
        """Messages."""
        return Dialect.MESSAGES

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
        return MessagesAssembler()

    def chunks(self, reply: UpstreamReply) -> Sequence[bytes]:
        """A whole answer as event data. Raises ModelReplyMalformed."""
        return list(whole_as_data(reply.body))

    def from_message(self, message: str, *, model: str, finish_reason: str, usage: Usage) -> bytes:
        """A whole answer around one message. Raises ModelReplyMalformed."""
        return make_reply(message, model=model, finish_reason=finish_reason, usage=usage)

    def fault(self, fault: Fault) -> bytes:
        """Anthropic's shape."""
        return messages_fault(fault)
