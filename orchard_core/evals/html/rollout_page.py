"""One rollout as a page to read: every turn, bounded in size, nothing in it works as markup."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from markupsafe import Markup, escape

from orchard_core.evals.clean import clean
from orchard_core.evals.html import words
from orchard_core.evals.html.page import template
from orchard_core.evals.transcript import Block, blocks
from orchard_core.gateway.expand import conversations
from orchard_core.gateway.turns import turns
from orchard_core.types.model import Message, ModelCall
from orchard_core.types.rollout import Rollout
from orchard_core.types.trajectory import Trajectory, Turn

PIECE = 12_000
"""Characters of one piece that are shown: the first two thirds and the last third of so many."""
WHOLE = 600_000
"""Characters of all pieces; what follows is left out and counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One message."""

    role: str
    """Who said it."""
    pieces: tuple[tuple[str, Markup], ...]
    """Kind and text of each piece."""

    @property
    def size(self) -> int:
        """Characters."""
        return sum(len(text) for _, text in self.pieces)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnView:
    """One call and what came of it."""

    index: int
    """The call's number."""
    facts: str
    """Tokens, time and how the answer ended."""
    said: tuple[Said, ...]
    """What stood before it, the answer, and what came back."""
    problems: tuple[str, ...]
    """Retries and errors."""


def render_rollout(rollout: Rollout, *, command: Markup | None, back: str) -> str:
    """The whole document. `back` is the address of the rollout's line in the report."""
    shown, left_out = _bounded(list(_turns(rollout.trajectory)))
    return template(
        "rollout.html",
        title=f"{rollout.task.id} #{rollout.attempt}",
        rollout=rollout,
        error=preformatted(rollout.error.message) if rollout.error else None,
        facts=_facts(rollout),
        turns=shown,
        left_out=left_out,
        command=command,
        back=back,
        verdict=_verdict(rollout),
    )


def preformatted(text: str) -> Markup:
    """Text with its lines, without control codes; a long one loses its middle."""
    kept = clean(text)
    if len(kept) > PIECE:
        head, tail = PIECE * 2 // 3, PIECE // 3
        left = len(kept) - head - tail
        kept = f"{kept[:head]}\n[… {left:,} characters left out …]\n{kept[-tail:]}"
    return escape(kept)


def _turns(trajectory: Trajectory) -> Iterator[TurnView]:
    sent = conversations(trajectory)
    for turn in turns(trajectory):
        before = sent[turn.call.index] if turn.follows is None else ()
        messages = [trajectory.messages[name] for name in before]
        yield TurnView(
            index=turn.call.index,
            facts=_call_facts(turn.call),
            said=tuple(_said([*messages, *_answer(trajectory, turn), *turn.observations])),
            problems=tuple(_problems(turn.call)),
        )


def _answer(trajectory: Trajectory, turn: Turn) -> list[Message]:
    answer = trajectory.messages.get(turn.call.response or "")
    return [] if answer is None else [answer]


def _said(messages: Iterable[Message]) -> Iterator[Said]:
    for message in messages:
        pieces = tuple((piece.kind, preformatted(_marked(piece))) for piece in blocks(message))
        yield Said(role=message.role, pieces=pieces)


def _marked(piece: Block) -> str:
    return {"text": "", "thought": "(thinks) ", "call": "→ "}[piece.kind] + piece.text


def _call_facts(call: ModelCall) -> str:
    sampled = call.usage.output
    parts = [f"{words.count(call.usage.total - sampled)} tokens in", f"{words.count(sampled)} out"]
    parts.append(words.seconds(call.timings.total_s))
    return ", ".join([*parts, call.finish_reason] if call.finish_reason else parts)


def _problems(call: ModelCall) -> Iterator[str]:
    for retry in call.retries:
        yield f"retried after {retry.waited_s:.1f} s: {retry.reason}"
    if call.error:
        yield f"{call.error.kind}: {call.error.message}"


def _bounded(every: list[TurnView]) -> tuple[list[TurnView], int]:
    shown: list[TurnView] = []
    room = WHOLE
    for turn in every:
        room -= sum(said.size for said in turn.said)
        if room < 0 and shown:
            break
        shown.append(turn)
    return shown, len(every) - len(shown)


def _facts(rollout: Rollout) -> dict[str, str]:
    provenance = rollout.provenance
    phases = ", ".join(
        f"{timing.phase.value} {words.seconds(timing.duration_s)}" for timing in rollout.timings
    )
    fallback = " (the task names another)" if provenance.image_fallback else ""
    return {
        "score": "none" if rollout.score is None else f"{rollout.score:g}",
        "ended": f"{rollout.outcome.value}, {rollout.attribution.value}",
        "harness": f"{rollout.harness}, version {provenance.harness}",
        "model": rollout.model,
        "task set": rollout.task.taskset,
        "sandbox": f"{provenance.provider}, image {provenance.image}{fallback}",
        "calls": f"{len(rollout.trajectory.calls)}, {words.count(rollout.usage.total)} tokens",
        "cost": words.dollars(rollout.cost_usd),
        "time": words.seconds(rollout.finished_at - rollout.started_at),
        "phases": phases or words.NONE,
        "id": rollout.id,
    }


def _verdict(rollout: Rollout) -> tuple[tuple[str, Markup], ...]:
    found: list[tuple[str, str]] = []
    if rollout.result is not None:
        found.append((f"Stopped: {rollout.result.stop.value}", rollout.result.message))
        found.append(("Final answer", rollout.result.answer or ""))
    if rollout.reward is not None:
        found.append(("Judged", rollout.reward.reason))
        found.append(("The verifier's log", rollout.reward.log))
    return tuple((head, preformatted(text)) for head, text in found if text)
