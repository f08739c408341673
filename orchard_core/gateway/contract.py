"""What a model plugin gives: upstreams that answer requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from orchard_core.types.model import Dialect, Price, UpstreamMode, Usage, VersionSpan
from orchard_core.types.task import Solution, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamRequest:
    """One request as the gateway hands it on."""

    dialect: Dialect
    """The dialect of `body`."""
    body: bytes
    """The request's JSON, the model's name already put in."""
    index: int
    """The call's index within its session."""
    timeout_s: float
    """Time for the whole answer, seconds."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of the harness that belong to the dialect, such as `anthropic-beta`."""
    prompt_tokens: Sequence[int] | None = None
    """Token-in mode only: the stored ids plus the rendered suffix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamReply:
    """One whole answer."""

    body: bytes
    """The answer's JSON in the request's dialect."""
    prompt_tokens: Sequence[int] | None = None
    """Ids of the rendered prompt, when the server tells."""
    completion_tokens: Sequence[int] | None = None
    """Sampled ids, when the server tells."""
    logprobs: Sequence[float] | None = None
    """Natural log-probabilities of the sampled ids, when the server tells."""
    versions: tuple[VersionSpan, ...] = ()
    """Policy versions, when the server tells."""
    usage: Usage | None = None
    """Token counts; None: the gateway reads them from the body."""


@runtime_checkable
class Upstream(Protocol):
    """Answers requests. The gateway retries, counts, records and limits; an upstream does none of it.

    Both methods raise ModelUnavailable, ModelRateLimited (its `retry_after_s` attribute may say how
    long), ModelTimeout, ModelRejected or ModelReplyMalformed.
    """

    @property
    def mode(self) -> UpstreamMode:
        """How much it tells about tokens."""

    @property
    def dialects(self) -> frozenset[Dialect]:
        """Dialects it speaks itself; others are translated to `chat`."""

    async def complete(self, request: UpstreamRequest) -> UpstreamReply:
        """Answer with the whole reply."""

    def stream(self, request: UpstreamRequest) -> AsyncIterator[bytes]:
        """Answer with the `data:` payloads of server-sent events, `[DONE]` left out.

        In chat mode ids travel as vLLM sends them: `prompt_token_ids` in the first payload, `token_ids` and
        `logprobs.content[].logprob` in each choice. The gateway takes out what the harness did not ask for.
        """

    async def close(self) -> None:
        """Give back connections."""


@runtime_checkable
class TokenCounter(Protocol):
    """What an upstream of the messages dialect may offer beside: its own count of a request's tokens."""

    async def count_tokens(self, request: UpstreamRequest) -> bytes | None:
        """The body of its answer; None: it does not count. Raises what `complete` raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContext:
    """What a model may know of the session it is opened for; only scripted models look at it."""

    rollout: str = ""
    """The rollout's id."""
    task: Task | None = None
    """The task."""
    solution: Callable[[], Solution | None] = field(default=lambda: None)
    """The task's known solution, read only when called."""
    seed: int = 0
    """Seed of the rollout."""


@runtime_checkable
class Model(Protocol):
    """A model as the user names it."""

    @property
    def name(self) -> str:
        """Name that is sent upstream and stored."""

    @property
    def price(self) -> Price | None:
        """Price per token; None: unknown. Scripted and local models are free: all zeros."""

    @property
    def concurrency(self) -> int | None:
        """Calls in flight at most; None: no bound of ours."""

    def upstream(self, context: SessionContext) -> Upstream:
        """The upstream that serves one session; a remote model gives the same one every time."""

    async def close(self) -> None:
        """Give back what it holds."""


class Renderer(Protocol):
    """Turns conversation into token ids for one model family, and back. Used in token-in mode."""

    def render(self, body: bytes) -> Sequence[int]:
        """Ids of a whole chat request, generation prompt included."""

    def render_suffix(self, body: bytes, done: int) -> Sequence[int]:
        """Ids of what follows the first `done` messages, the last of which is the model's own answer:
        the turn's end, the new messages and the generation prompt."""

    def parse(self, completion: Sequence[int]) -> bytes:
        """JSON of the assistant message that sampled ids spell."""

    @property
    def stop_ids(self) -> frozenset[int]:
        """Ids that end an answer."""


@runtime_checkable
class TokenUpstream(Upstream, Protocol):
    """An upstream of mode `token-in`. The gateway renders the prompt, hands it on in `prompt_tokens`, and
    builds the answer's body with `renderer.parse` when the reply's `body` is empty.

    A reply that was sampled up to its stop id holds that id as its last token; the gateway then drops the
    same id from the front of `render_suffix`.
    """

    @property
    def renderer(self) -> Renderer:
        """The renderer of the model family it serves."""


BeforeCall = Callable[[str, int], Awaitable[None]]
"""`before_call(session id, call index)`, awaited before a call goes upstream; it may hold it."""
