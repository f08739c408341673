"""Token ids in ATIF steps: of each answer, and the whole conversation put together from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orchard_core.formats.conversation import Fields
from orchard_core.types.dataset import AnswerSpan, RecordedTokens


def answer_metrics(tokens: RecordedTokens | None, *, prompts: bool) -> dict[int, Fields]:
    """The metrics of each answer by its message's place: ids and log-probabilities as sampled, and with
    `prompts` the ids before them, which makes files quadratic in the number of turns."""
    if tokens is None:
        return {}
    return {span.message: _metrics(tokens, span, prompts=prompts) for span in tokens.answers}


def _metrics(tokens: RecordedTokens, span: AnswerSpan, *, prompts: bool) -> Fields:
    inside = slice(span.start, span.stop)
    told: Fields = {
        "prompt_tokens": span.start,
        "completion_tokens": span.stop - span.start,
        "completion_token_ids": list(tokens.token_ids[inside]),
    }
    if all(tokens.mask[inside]):  # elsewhere no log-probability is known
        told["logprobs"] = list(tokens.logprobs[inside])
    if prompts:
        told["prompt_token_ids"] = list(tokens.token_ids[: span.start])
    return told


def tokens_of(steps: Sequence[Fields], places: Sequence[int]) -> RecordedTokens | None:
    """The ids of a conversation, where every answer tells its prompt's, its own and their log-probabilities,
    and each prompt goes on where the last answer ended; else None. `places` are the messages of the agent's
    steps."""
    ids: list[int] = []
    mask, logprobs, answers = bytearray(), list[float](), []
    agents = [step for step in steps if step.get("source") == "agent"]
    for step, place in zip(agents, places, strict=True):
        metrics = step.get("metrics")
        told = metrics if isinstance(metrics, dict) else {}
        prompt, answer, scores = (
            _numbers(told.get("prompt_token_ids")),
            _numbers(told.get("completion_token_ids")),
            _numbers(told.get("logprobs"), whole=False),
        )
        if prompt is None or answer is None or scores is None or len(scores) != len(answer):
            return None
        if prompt[: len(ids)] != ids:
            return None
        mask += bytes(len(prompt) - len(ids)) + bytes([1]) * len(answer)
        logprobs += [0.0] * (len(prompt) - len(ids)) + [float(score) for score in scores]
        answers.append(AnswerSpan(message=place, start=len(prompt), stop=len(prompt) + len(answer)))
        ids = [*prompt, *answer]
    if not ids:
        return None
    return RecordedTokens(
        token_ids=tuple(ids), mask=tuple(mask), logprobs=tuple(logprobs), answers=tuple(answers)
    )


def _numbers(value: Any, *, whole: bool = True) -> list[Any] | None:
    kinds = int if whole else (int, float)
    if not isinstance(value, list) or not all(
        isinstance(n, kinds) and not isinstance(n, bool) for n in value
    ):
        return None
    return value
