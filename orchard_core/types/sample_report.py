"""How the calls of a rollout hang together, and what becomes of each sampled token."""

from __future__ import annotations

from enum import StrEnum

from orchard_core.types.base import Record
from orchard_core.types.sample import SampleLabel, UntrainedSpan


class Relation(StrEnum):
    """How one call relates to those before it."""

    START = "start"
    """It begins the main thread."""
    APPENDED = "appended"
    """It keeps all of the call it follows: prompt and answer."""
    REALIGNED = "realigned"
    """It keeps the prompt of the call it follows, and the answer comes back changed: rendered with other
    ids, or, where no ids are known, in other words."""
    FORKED = "forked"
    """It begins a further thread, or leaves one at an earlier place."""
    SIDE = "side"
    """It stands alone: nothing follows it, and it shares no beginning with another thread."""
    UNUSED = "unused"
    """Its answer was repeated, cut or given up, and nothing follows it."""


class ThreadKind(StrEnum):
    """What a thread is, as far as the recorded calls can really tell."""

    MAIN = "main"
    """The agent's own conversation."""
    BRANCH = "branch"
    """It leaves another thread after an answer of it and goes on differently."""
    TRIMMED = "trimmed"
    """It keeps later messages of another thread and leaves out some before them."""
    COMPACTED = "compacted"
    """It goes on from an earlier answer's text, which a message of its beginning holds."""
    SUBAGENT = "subagent"
    """A tool call of another thread holds its first message: what it was asked to do."""
    FORK = "fork"
    """It shares a beginning with another thread, or has several calls; nothing tells more."""
    SIDE = "side"
    """One call beside the others, such as a title, a summary or a count of tokens."""


class CallPlace(Record):
    """One call's place."""

    call: int
    """Index of the call."""
    thread: int | None
    """Place of its thread in the report; None: it is unused."""
    relation: Relation
    """How it relates to those before it."""
    follows: int | None
    """Index of the call it continues."""
    by_tokens: bool
    """Its token ids and their log-probabilities are known and told its place; else its messages alone."""
    added: int
    """Messages of its request that the call it follows had not sent."""
    dropped_messages: int
    """Messages of the call before it in order of arrival that it does not send again."""
    sampled: int | None
    """Sampled tokens; None: the server did not tell."""
    trained: int
    """Those of them that have mask 1 in a sample."""
    untrained: tuple[UntrainedSpan, ...] = ()
    """The others, with the reason."""
    why: str
    """One sentence: what is trained of it, and why not the rest."""
    asks: str
    """Beginning of the last message it sent, for people."""
    says: str
    """Beginning of its answer, for people."""


class ThreadPlace(Record):
    """One thread."""

    kind: ThreadKind
    """What it is."""
    label: SampleLabel
    """The label of its training sample."""
    calls: tuple[int, ...]
    """Indices of its calls, in order."""
    beside: int | None = None
    """Index of the call that tells its kind: the one it leaves, that asked for it or that it is made from."""


class SampleReport(Record):
    """All calls of one rollout."""

    threads: tuple[ThreadPlace, ...] = ()
    """Main thread first."""
    calls: tuple[CallPlace, ...] = ()
    """In order of arrival."""
    sampled: int = 0
    """Sampled tokens over all calls, of those that the server told."""
    trained: int = 0
    """Tokens that have mask 1."""
    unusable: str = ""
    """Why there is no training sample at all."""
