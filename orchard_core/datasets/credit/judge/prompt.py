"""The messages of one judgement: the whole trajectory, shortened only as far as the context needs it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from orchard_core.datasets.credit.judge.template import Template
from orchard_core.datasets.credit.judge.view import GoldOutcome, TrajectoryView
from orchard_core.rollout.text import excerpt, storable

BYTES_PER_TOKEN = 4
"""An estimate for English and code; nobody but the judge's own tokenizer knows better."""

OUTCOME_CHARS = 8_000
"""The verifier's output is cut to this many characters, its head and tail."""

_LADDER = (16_000, 8_000, 4_000, 2_000, 1_000, 500, 250)
"""Characters that one text may have, tried in order: first of observations alone, then of everything."""
_WHOLE = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What a judge is asked."""

    system: str
    """The instructions."""
    user: str
    """The recording."""
    shortened: int
    """The limit in characters that its longest texts were cut to; 0: it is whole."""

    @property
    def tokens(self) -> int:
        """An estimate of its length."""
        return tokens_of(self.system) + tokens_of(self.user)

    @property
    def sha256(self) -> str:
        """Hash of both texts, in hexadecimal."""
        return hashlib.sha256(f"{self.system}\0{self.user}".encode()).hexdigest()


def tokens_of(text: str) -> int:
    """An estimate of a text's tokens."""
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def make_prompt(
    template: Template, view: TrajectoryView, outcome: GoldOutcome, *, context_tokens: int
) -> Prompt | None:
    """The prompt; None when it is longer than `context_tokens` even with every text cut to its shortest."""
    mark = _mark(view, outcome)
    for seen, said in _limits():
        prompt = _filled(template, view, outcome, mark, seen=seen, said=said)
        if prompt.tokens <= context_tokens:
            return prompt
    return None


def _limits() -> Iterator[tuple[int, int]]:
    yield _WHOLE, _WHOLE
    yield from ((limit, _WHOLE) for limit in _LADDER)
    yield from ((_LADDER[-1], limit) for limit in _LADDER)


def _filled(
    template: Template, view: TrajectoryView, outcome: GoldOutcome, mark: str, *, seen: int, said: int
) -> Prompt:
    values = {
        "mark": mark,
        "context": excerpt(view.context, said),
        "conversation": "\n".join(_turns(view, mark, seen=seen, said=said)),
        "outcome": outcome_text(outcome),
        "turns": str(len(view.turns)),
        "last": str(max(0, len(view.turns) - 1)),
    }
    return Prompt(
        system=template.fill("system", values),
        user=template.fill("user", values),
        shortened=min(seen, said) % _WHOLE,
    )


def _mark(view: TrajectoryView, outcome: GoldOutcome) -> str:
    """A word for the recording's headings and ends that none of its texts can foresee: it hashes them all."""
    texts = [view.context, *(text for turn in view.turns for text in (turn.answer, turn.observations))]
    told = "\0".join([*texts, outcome_text(outcome)])
    return f"rec-{hashlib.sha256(told.encode('utf-8', 'backslashreplace')).hexdigest()[:12]}"


def _turns(view: TrajectoryView, mark: str, *, seen: int, said: int) -> Iterator[str]:
    for number, turn in enumerate(view.turns):
        yield f"== {mark} turn {number}: the agent's answer ==\n{excerpt(turn.answer, said)}"
        if turn.observations:
            yield f"== {mark} turn {number}: what came back ==\n{excerpt(turn.observations, seen)}"


def outcome_text(outcome: GoldOutcome) -> str:
    """What the tests said, as lines."""
    score = "none" if outcome.score is None else f"{outcome.score:g}"
    lines = [f"score {score} (not passed); the agent's run ended as: {outcome.ended}"]
    lines += [f"{name}: {value:g}" for name, value in outcome.parts]
    lines += [excerpt(text, OUTCOME_CHARS) for text in (outcome.reason, outcome.log) if text]
    return storable("\n".join(lines))
