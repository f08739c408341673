"""The seam between the gateway and a wire protocol. A new dialect is one codec and one route."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from orchard_core.gateway.contract import UpstreamReply
from orchard_core.gateway.conversation import Conversation, Heard
from orchard_core.types.model import Dialect, Usage


@dataclass(slots=True, kw_only=True)
class Request:
    """A harness's request, read once."""

    dialect: Dialect
    """The wire protocol."""
    body: bytes
    """The JSON as it goes upstream."""
    model: str
    """The model asked for."""
    stream: bool
    """Whether the answer is to come in pieces."""
    fields: frozenset[str]
    """Names of the request's top-level fields: what an answer may show."""
    usage_wanted: bool
    """A streamed answer is to end with token counts."""
    heard: Heard
    """The messages."""
    tools: str | None
    """Tool definitions, JSON text."""
    params: str
    """Everything else, JSON text."""


@dataclass(slots=True, kw_only=True)
class Answer:
    """What is known of an answer, whole or as far as it came."""

    message: str | None = None
    """JSON text of the message, ASCII only; None before the first piece."""
    finish_reason: str | None = None
    """As the server said; None while it is not over."""
    usage: Usage | None = None
    """Token counts; None when the server did not tell."""
    prompt: array[int] | None = None
    """Ids of the rendered prompt."""
    completion: array[int] | None = None
    """Sampled ids."""
    logprobs: array[float] | None = None
    """Natural log-probabilities of the sampled ids."""


class Assembler(Protocol):
    """Puts a streamed answer together while it passes."""

    def feed(self, payload: bytes) -> bytes | None:
        """Take one event's data; returns what the harness gets of it, None for nothing.

        Raises ModelReplyMalformed, and ModelUnavailable when the event reports an error.
        """

    def answer(self) -> Answer:
        """What has come so far."""


class DialectCodec(Protocol):
    """Reads and writes one wire protocol."""

    @property
    def dialect(self) -> Dialect:
        """Which."""

    def request(self, body: bytes, conversation: Conversation) -> Request:
        """Read a request. Raises JsonFault with a message for the sender."""

    def reply(self, body: bytes) -> Answer:
        """Read a whole answer. Raises ModelReplyMalformed."""

    def assembler(self, request: Request) -> Assembler:
        """For one streamed answer."""

    def chunks(self, reply: UpstreamReply) -> Sequence[bytes]:
        """A whole answer as event data, for upstreams that only answer whole."""

    def from_message(self, message: str, *, model: str, finish_reason: str, usage: Usage) -> bytes:
        """The body of a whole answer around one message (JSON text), for upstreams that only sample ids."""
