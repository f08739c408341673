"""One row of a dataset: one conversation of one rollout, with all that is needed to trust and train on it."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field, JsonValue

from orchard_core.types.base import Record
from orchard_core.types.model import VersionSpan
from orchard_core.types.rollout import Attribution, Outcome
from orchard_core.types.sample import SampleLabel

DATASET_VERSION = 1
"""Version of DatasetRow and of the manifest; readers refuse a newer one with a clear message."""


class AnswerSpan(Record):
    """Where one sampled answer lies among the token ids."""

    message: int
    """Place of the assistant message in `messages`."""
    start: int
    """First of its ids."""
    stop: int
    """One past its last."""


class RecordedTokens(Record):
    """The conversation as the model saw and sampled it. All token-wise fields have the same length, T."""

    token_ids: tuple[int, ...]
    """[T] prompt, answers and observations."""
    mask: tuple[int, ...]
    """[T] 1 where the token was sampled and may be trained on here, whatever the row's own mask says."""
    logprobs: tuple[float, ...]
    """[T] natural log-probability at sampling where mask is 1, else 0.0."""
    versions: tuple[VersionSpan, ...] = ()
    """Policy versions, in positions of these ids."""
    answers: tuple[AnswerSpan, ...] = ()
    """Where each answer lies, in order; what `mask` turns into when a turn is left out of training."""


class DatasetRow(Record):
    """One conversation. With M messages, A of them the assistant's."""

    schema_version: int = DATASET_VERSION
    """Version of this record's shape."""
    id: str
    """Unique within a dataset: the rollout's id, `#N` for its N-th further conversation, and `~N` where a mix
    takes it the N-th time: repeated, or from another run of the same task and attempt."""
    rollout: str
    """Id of the rollout it is from."""
    label: SampleLabel = SampleLabel.MAIN
    """Which conversation of the rollout it is."""
    messages: str
    """JSON array of M chat messages in OpenAI's shape; call arguments are the exact text that was sampled."""
    tools: str = "[]"
    """JSON array of the tool definitions that the model was shown."""
    mask: tuple[int, ...]
    """[M] 1: the message is trained on. Only ever 1 for the assistant's messages."""
    weights: tuple[float, ...] = ()
    """[M] loss weight of each message; empty: 1 throughout."""
    values: tuple[float, ...] = ()
    """[A+1] V(s_t) before each answer and after the last, as credit assignment has it; empty: not done."""
    credit: str = ""
    """What estimated `values`, such as `judge` or `branch`; empty: nothing."""
    tokens: RecordedTokens | None = None
    """Token ids as recorded; None when the model's server told none."""
    token_count: int
    """Tokens of the whole conversation: as recorded, else as estimated (see `token_count_exact`)."""
    token_count_exact: bool = False
    """The count is the server's own, not an estimate from the text's length."""
    turns: int
    """A: the assistant's messages."""
    harness: str = ""
    """Name of the harness; empty: unknown."""
    model: str = ""
    """The model as the user named it."""
    taskset: str = ""
    """Name of the task set."""
    task: str = ""
    """The task's id; rows of one task never stand in two splits."""
    task_text: str = ""
    """The task's instruction, by which near-duplicate tasks and leaks are found."""
    tags: tuple[str, ...] = ()
    """The task's tags."""
    attempt: int = 0
    """Which attempt at the task, from 0."""
    seed: int = 0
    """The rollout's seed."""
    outcome: Outcome | None = None
    """How the rollout ended; None: unknown."""
    attribution: Attribution | None = None
    """Whose doing that is."""
    reward: float | None = None
    """The score; None: there is none."""
    split: str = ""
    """The split it belongs to, such as `train`; empty: none was made."""
    source: str = ""
    """The mixing source it came by."""
    provenance: Mapping[str, JsonValue] = Field(default_factory=dict)
    """Where it is from: run, versions and digests, as the rollout or the file told."""
    metadata: Mapping[str, JsonValue] = Field(default_factory=dict)
    """What a format needs to be written back as it was read, and what users add."""


def task_digest(provenance: Mapping[str, JsonValue]) -> str:
    """The hash of everything that defines a row's task, as its provenance tells it; empty: it tells none."""
    digest = provenance.get("task_digest")
    return digest if isinstance(digest, str) else ""
