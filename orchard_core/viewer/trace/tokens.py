"""The sampled tokens of one turn: ids, probabilities, and what trains or does not train them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from orchard_core.types.dataset import DatasetRow
from orchard_core.viewer.trace.rollout import ReadRollout

MOST = 20_000
"""Tokens of one turn that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledToken:
    """One token."""

    id: int
    """Its id in the model's vocabulary."""
    probability: float | None
    """With which it was sampled; None: not told."""
    why: str = ""
    """Why it is not trained; empty: it is."""


def call_tokens(read: ReadRollout, number: int) -> Sequence[SampledToken]:
    """Those of a rollout's call; none where the server did not tell."""
    call = next((place.call for place in read.places if place.call.index == number), None)
    ids = (call.completion_tokens or ()) if call is not None else ()
    if call is None or not ids:
        return ()
    told = next((p for p in read.report.calls if p.call == number), None) if read.report else None
    logprobs = call.logprobs if call.logprobs and len(call.logprobs) == len(ids) else None
    reasons = [""] * len(ids)
    for span in told.untrained if told is not None else ():
        reasons[span.start : span.stop] = [span.reason.value] * (min(span.stop, len(ids)) - span.start)
    return [
        SampledToken(id=token, probability=_probability(logprobs[at] if logprobs else None), why=reasons[at])
        for at, token in enumerate(ids[:MOST])
    ]


def row_tokens(row: DatasetRow, message: int) -> Sequence[SampledToken]:
    """Those of one answer of a row."""
    tokens = row.tokens
    span = next((s for s in tokens.answers if s.message == message), None) if tokens else None
    if tokens is None or span is None:
        return ()
    trained = message < len(row.mask) and row.mask[message]
    found = []
    for at in range(span.start, min(span.stop, span.start + MOST, len(tokens.token_ids))):
        sampled = at < len(tokens.mask) and tokens.mask[at]
        why = "" if sampled and trained else ("turn left out" if sampled else "not sampled here")
        logprob = tokens.logprobs[at] if sampled and at < len(tokens.logprobs) else None
        found.append(SampledToken(id=tokens.token_ids[at], probability=_probability(logprob), why=why))
    return found


def _probability(logprob: float | None) -> float | None:
    """Between 0 and 1, whatever a server says."""
    if logprob is None or math.isnan(logprob):
        return None
    return math.exp(min(logprob, 0.0))
