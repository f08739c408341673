"""The seam between the gateway and a wire protocol. A new dialect is one codec and one route."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from orchard_core.gateway.contract import UpstreamReply
from orchard_core.gateway.conversation import Conversation, Heard
from orchard_core.gateway.faults import Fault
from orchard_core.types.model import Dialect, Usage


@dataclass(slots=True, kw_only=True)
class Request:
    """A harness's request, read once."""

    dialect: Dialect
    """The wire protocol the harness spoke."""
    wire: Dialect
    """The wire protocol of `body` and of the messages: `dialect`, or chat when it was translated."""
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
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Fields that a translation left out: dotted name to how often."""
    notes: Mapping[str, object] = field(default_factory=dict)
    """What the answer's translation needs to know, as `Translated.notes`."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """The harness's headers that belong to the dialect, such as `anthropic-beta`."""


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
        """Take one event's data from the upstream; returns what the harness gets for it as framed
        server-sent events, one or several, None for nothing.

        Raises ModelReplyMalformed, and ModelUnavailable when the event reports an error.
        """

    def end(self) -> bytes:
        """The framed events that end a complete stream, such as `data: [DONE]`. They are sent once the call
        is recorded. Raises ModelReplyMalformed."""

    def failed(self, fault: Fault) -> bytes:
        """The framed event that ends the stream with an error instead."""

    def answer(self) -> Answer:
        """What has come so far."""


class DialectCodec(Protocol):
    """Reads and writes one wire protocol, towards the harness and towards an upstream that speaks it."""

    @property
    def dialect(self) -> Dialect:
        """Which."""

    def request(self, body: bytes, conversation: Conversation) -> Request:
        """Read a request. Raises JsonFault with a message for the sender."""

    def reply(self, body: bytes) -> Answer:
        """Read a whole answer of the upstream's. Raises ModelReplyMalformed."""

    def outgoing(self, body: bytes, request: Request) -> bytes:
        """The upstream's whole answer as the harness gets it: untouched, unless it must be translated."""

    def assembler(self, request: Request) -> Assembler:
        """For one streamed answer."""

    def chunks(self, reply: UpstreamReply) -> Sequence[bytes]:
        """A whole answer as event data, for upstreams that only answer whole."""

    def from_message(self, message: str, *, model: str, finish_reason: str, usage: Usage) -> bytes:
        """The body of a whole answer around one message (JSON text), for upstreams that only sample ids."""

    def fault(self, fault: Fault) -> bytes:
        """The JSON body of an error, in the shape this protocol's clients expect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Translated:
    """A request put into chat completions."""

    body: bytes
    """The chat request's JSON, `model`, `stream` and `stream_options` included."""
    dropped: Mapping[str, int]
    """What chat cannot say: dotted field name to how often; empty on the declared subset."""
    notes: Mapping[str, object] = field(default_factory=dict)
    """What the answer's translation needs to know of the request, such as kinds of its tools."""


class EventTranslator(Protocol):
    """Turns one streamed chat answer into another protocol's events, piece by piece."""

    def feed(self, payload: bytes) -> bytes:
        """One chat chunk's data in, framed events out; may be empty. A chunk of another shape may raise
        ValueError, TypeError, LookupError or AttributeError."""

    def end(self) -> bytes:
        """The events that end the stream."""

    def failed(self, fault: Fault) -> bytes:
        """The event that ends the stream with an error instead."""


class Translation(Protocol):
    """Another protocol in terms of chat completions, for upstreams that speak only chat.

    Deterministic, message by message: a conversation that grew at its end is translated to a chat that
    grew at its end, and an answer sent back becomes the very message the model gave.
    """

    def request(self, body: bytes, conversation: Conversation) -> Translated:
        """`conversation` knows the session's earlier answers, for what this protocol cannot carry back
        exactly. Raises JsonFault with a message for the sender."""

    def reply(self, body: bytes, notes: Mapping[str, object]) -> bytes:
        """A whole chat completion as a whole answer. One of another shape may raise as for events."""

    def events(self, notes: Mapping[str, object]) -> EventTranslator:
        """For one streamed answer."""
