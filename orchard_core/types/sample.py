"""Token-level training samples."""

from __future__ import annotations

from enum import StrEnum

from orchard_core.types.base import Record
from orchard_core.types.model import VersionSpan


class SampleLabel(StrEnum):
    """How a sample relates to its rollout."""

    MAIN = "main"
    """The longest thread that starts from the first request which is no side call."""
    FORK = "fork"
    """A thread that shares a beginning with another and then differs: compaction, trimming, subagents."""
    SIDE = "side"
    """A thread of one call that nothing follows, that shares no beginning and that no tool call asked for:
    titles, topic checks."""


class Untrained(StrEnum):
    """Why a sampled token is trained in no sample."""

    DRIFT = "drift"
    """The next prompt renders that stretch with other ids."""
    SIDE = "side"
    """Its call is a side call."""
    RETRIED = "retried"
    """The same request was sent again and that answer was used instead."""
    CANCELLED = "cancelled"
    """The client left before the answer ended."""
    CUT = "cut"
    """The answer was cut by a limit or an error and not used."""
    UNSCORED = "unscored"
    """The server told the ids but not their log-probabilities, or not the prompt they followed."""


class UntrainedSpan(Record):
    """A stretch of sampled tokens that no sample trains."""

    call: int
    """Index of the call."""
    start: int
    """First token of the stretch, counted from the answer's start."""
    stop: int
    """One past its last token."""
    reason: Untrained
    """Why."""


class TrainingSample(Record):
    """One sequence to train on. All token-wise fields have the same length, T."""

    token_ids: tuple[int, ...]
    """[T] prompt, answers and observations as the model saw them."""
    mask: tuple[int, ...]
    """[T] 1 where the token was sampled and is trained here, else 0."""
    logprobs: tuple[float, ...]
    """[T] natural log-probability at sampling where mask is 1, else 0.0."""
    versions: tuple[VersionSpan, ...] = ()
    """Policy versions, in positions of this sample."""
    label: SampleLabel
    """How it relates to its rollout."""
    calls: tuple[int, ...]
    """Indices of the calls whose answers it holds."""


class SampleSet(Record):
    """Everything one rollout gives to training, and what it does not give."""

    samples: tuple[TrainingSample, ...] = ()
    """Main thread first."""
    untrained: tuple[UntrainedSpan, ...] = ()
    """Each sampled token that has mask 1 nowhere lies in exactly one span."""
    unusable: str = ""
    """Why there are no samples at all, such as an upstream that reports no token ids."""
