"""Model endpoints and recorded model calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pydantic import Field

from orchard_core.types.base import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEndpoint:
    """What a harness gets: an OpenAI-compatible server that is in truth one recorded gateway session."""

    base_url: str
    """Root of the API, ending in `/v1`."""
    api_key: str = field(repr=False)
    """The session's random key; a vendor's key never stands here."""
    model: str
    """The model name to ask for."""

    @property
    def root_url(self) -> str:
        """`base_url` without `/v1`: what Anthropic's clients call the base URL."""
        return self.base_url.rstrip("/").removesuffix("/v1")

    @property
    def tools_url(self) -> str:
        """The MCP server (streamable HTTP, the same key as a bearer token) of the task's tools."""
        return f"{self.root_url}/tools/mcp"


class Dialect(StrEnum):
    """The wire protocol a harness spoke."""

    CHAT = "chat"
    """OpenAI chat completions."""
    RESPONSES = "responses"
    """OpenAI responses."""
    MESSAGES = "messages"
    """Anthropic messages."""


class UpstreamMode(StrEnum):
    """How much an upstream tells about tokens."""

    TOKEN_IN = "token-in"  # noqa: S105 - a mode's name
    """Token ids go in; ids and log-probabilities come out."""
    CHAT = "chat"
    """Messages go in; ids come out as the server reports them."""
    TEXT = "text"
    """No ids: good for evaluation and SFT, never for RL."""


class Message(Record):
    """One message of a conversation, in the dialect it travelled in."""

    role: str
    """system, developer, user, assistant or tool."""
    raw: str
    """The message as ASCII-only JSON text, unknown fields and call arguments included; a lone surrogate
    in it is an escape and so survives storage."""


class Usage(Record):
    """Token counts that never overlap: their sum is what went through the model."""

    input: int = 0
    """Prompt tokens that were neither read from nor written to a cache."""
    cache_read: int = 0
    """Prompt tokens read from a cache."""
    cache_write: int = 0
    """Prompt tokens written to a cache."""
    output: int = 0
    """Sampled tokens, reasoning included."""

    @property
    def total(self) -> int:
        """All four together."""
        return self.input + self.cache_read + self.cache_write + self.output

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            output=self.output + other.output,
        )


class Price(Record):
    """US dollars per million tokens."""

    input: float
    """Uncached prompt tokens."""
    output: float
    """Sampled tokens."""
    cache_read: float | None = None
    """Cached prompt tokens; None: as `input`."""
    cache_write: float | None = None
    """Tokens written to a cache; None: as `input`."""

    def cost(self, usage: Usage) -> float:
        """US dollars for one call's usage."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        paid = (
            usage.input * self.input
            + usage.cache_read * read
            + usage.cache_write * write
            + usage.output * self.output
        )
        return paid / 1_000_000


class MessageRefs(Record):
    """A list of messages as a change to an earlier call's list, so that a long talk is stored linearly."""

    base: int | None = None
    """Index of the call whose request is extended; None: starts from nothing."""
    keep: int = 0
    """How many of the base's messages stand at the front."""
    added: tuple[str, ...] = ()
    """Content hashes of the messages after those, keys of `Trajectory.messages`."""


class TokenRefs(Record):
    """A list of token ids as a change to an earlier call's prompt plus answer."""

    base: int | None = None
    """Index of the call whose prompt and completion are extended; None: starts from nothing."""
    keep: int = 0
    """How many of the base's (prompt + completion) ids stand at the front."""
    added: tuple[int, ...] = ()
    """The ids after those."""


class VersionSpan(Record):
    """Which policy version sampled a stretch of an answer."""

    start: int
    """First token of the stretch, counted from the answer's start."""
    stop: int
    """One past its last token."""
    version: str
    """The version's name, such as a training step."""


class CallTimings(Record):
    """When things happened, seconds; wall clock is kept once, the rest are durations."""

    started_at: float
    """Seconds since the epoch."""
    waited_s: float = 0.0
    """Waiting for a free slot, a rate limit or a retry; not charged to the task."""
    first_token_s: float | None = None
    """From sending to the first piece of the answer; None without streaming."""
    total_s: float = 0.0
    """From the request's arrival to the end of the answer."""


class Retry(Record):
    """An attempt at a call that failed and was repeated."""

    reason: str
    """What went wrong: a status or an error class."""
    waited_s: float
    """Pause before the next attempt, seconds."""


class CallError(Record):
    """Why a call has no answer."""

    kind: str
    """The error class in orchard_core.errors, or `Cancelled` when the client left."""
    message: str
    """For people; keys are redacted."""


class ModelCall(Record):
    """One recorded request and its answer."""

    index: int
    """Order of arrival within the session, from 0; other calls refer to it."""
    dialect: Dialect
    """What the harness spoke."""
    wire: Dialect | None = None
    """What the upstream was spoken to in, and so the shape of the recorded messages; None: `dialect`."""
    dropped: Mapping[str, int] = Field(default_factory=dict)
    """Fields of the request that the translation between the two left out: dotted name to how often."""
    streamed: bool = False
    """The harness asked for SSE."""
    messages: MessageRefs
    """The request's conversation."""
    tools: str | None = None
    """Content hash of the tool definitions' JSON, a key of `Trajectory.blobs`."""
    params: str = "{}"
    """Every other field of the request, as JSON text: sampling parameters and unknown fields alike."""
    response: str | None = None
    """Content hash of the answer's message; None when there is no answer."""
    finish_reason: str | None = None
    """As the server said: stop, length, tool_calls, ..."""
    prompt_tokens: TokenRefs | None = None
    """Ids of the rendered prompt; None when the server does not tell."""
    completion_tokens: tuple[int, ...] | None = None
    """Sampled ids; None when the server does not tell."""
    logprobs: tuple[float, ...] | None = None
    """Natural log-probability each id was sampled with, aligned with `completion_tokens`."""
    versions: tuple[VersionSpan, ...] = ()
    """Policy versions of the sampled ids."""
    usage: Usage = Usage()
    """Token counts."""
    cost_usd: float | None = None
    """US dollars; None: unknown; 0.0: free."""
    timings: CallTimings
    """When and how long."""
    retries: tuple[Retry, ...] = ()
    """Failed attempts before this answer."""
    error: CallError | None = None
    """Why there is no answer, or why it was cut."""
