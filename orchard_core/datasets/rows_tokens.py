"""The token ids of a conversation, from the sample that was built of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchard_core.types.dataset import AnswerSpan, RecordedTokens
from orchard_core.types.sample import TrainingSample


def recorded_tokens(
    sample: TrainingSample | None, prompt_sizes: Mapping[int, int], places: Sequence[int]
) -> RecordedTokens | None:
    """The sample of a conversation as its row holds it; `places` are its answers' places among the messages.

    An answer's span ends with the last id that is trained: what follows up to the next answer is an
    observation, or was rendered with other ids than were sampled.
    """
    if sample is None:
        return None
    size = len(sample.token_ids)
    starts = [prompt_sizes[call] for call in sample.calls]
    mask = bytes(sample.mask)
    answers = []
    for place, start, end in zip(places, starts, [*starts[1:], size], strict=True):
        stop = mask.rfind(1, start, end) + 1
        answers.append(AnswerSpan(message=place, start=start, stop=max(stop, start)))
    return RecordedTokens.model_construct(
        token_ids=sample.token_ids,
        mask=sample.mask,
        logprobs=sample.logprobs,
        versions=sample.versions,
        answers=tuple(answers),
    )
