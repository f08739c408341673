"""One rollout as a text to read: what it was, every turn, and how it was judged."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from orchard_core.cli.display.words import count, money
from orchard_core.evals.clean import clean, clean_line
from orchard_core.evals.transcript import Block, blocks, shorten
from orchard_core.gateway.expand import conversations
from orchard_core.gateway.turns import turns
from orchard_core.types.model import ModelCall
from orchard_core.types.rollout import Rollout
from orchard_core.types.trajectory import Trajectory, Turn

_WHOLE = 100_000
_LINES = 24
"""Lines of one piece shown unless the whole is asked for."""
_STYLE = {"text": "", "thought": "dim italic", "call": "cyan"}
_MARK = {"text": "", "thought": "(thinks) ", "call": "→ "}


def page(rollout: Rollout, *, full: bool, pager: bool, named: str = "") -> None:
    """Print it, through the user's pager when it is longer than the screen. `named` says what ran it as the
    user wrote that."""
    terminal = sys.stdout.isatty()
    width = None if terminal else _WHOLE
    out = Console(width=width, markup=False, emoji=False, highlight=False, soft_wrap=not terminal)
    text = render(rollout, full=full, named=named)
    if pager and terminal and len(text.wrap(out, out.width)) >= out.height:
        os.environ.setdefault("LESS", "-R")
        with out.pager(styles="NO_COLOR" not in os.environ):
            out.print(text)
    else:
        out.print(text, end="")


def render(rollout: Rollout, *, full: bool, named: str = "") -> Text:
    """The whole text."""
    out = Text()
    for style, line in _lines(rollout, full=full, named=named):
        out.append(line + "\n", style=style)
    return out


def _lines(rollout: Rollout, *, full: bool, named: str) -> Iterator[tuple[str, str]]:
    yield from _head(rollout, named or f"{rollout.harness} / {rollout.model}")
    requests = conversations(rollout.trajectory)
    for turn in turns(rollout.trajectory):
        if turn.follows is None:
            for name in requests[turn.call.index]:
                message = rollout.trajectory.messages[name]
                yield from _message(message.role, blocks(message), full=full)
        yield from _turn(rollout.trajectory, turn, full=full)
    yield from _verdict(rollout, full=full)


def _head(rollout: Rollout, named: str) -> Iterator[tuple[str, str]]:
    yield "bold", f"{clean_line(rollout.task.id)}#{rollout.attempt}  {rollout.id}"
    yield "", f"{clean_line(rollout.task.taskset)} / {clean_line(named)}"
    image = clean_line(rollout.provenance.image)
    fallback = " (fallback: the task names another image)" if rollout.provenance.image_fallback else ""
    yield "", f"sandbox {rollout.provenance.provider}, image {image}{fallback}"
    score = "none" if rollout.score is None else f"{rollout.score:g}"
    yield "bold", f"score {score}, {rollout.outcome.value} ({rollout.attribution.value})"
    seconds = rollout.finished_at - rollout.started_at
    tokens = f"{count(rollout.usage.total)} tokens, {count(rollout.usage.output)} of them sampled"
    yield "", f"{len(rollout.trajectory.calls)} calls, {tokens}, {money(rollout.cost_usd)}, {seconds:.1f} s"
    phases = ", ".join(f"{timing.phase.value} {timing.duration_s:.2f}" for timing in rollout.timings)
    yield "dim", f"seconds: {phases}"
    if rollout.error:
        yield (
            "red",
            f"error in {rollout.error.phase.value}: {rollout.error.kind}: {clean(rollout.error.message)}",
        )


def _turn(trajectory: Trajectory, turn: Turn, *, full: bool) -> Iterator[tuple[str, str]]:
    yield "bold", f"\n── call {turn.call.index}  {_facts(turn.call)}"
    answer = trajectory.messages.get(turn.call.response or "")
    if answer is not None:
        yield from _pieces(blocks(answer), full=full)
    for retry in turn.call.retries:
        yield "yellow", f"retried after {retry.waited_s:.1f} s: {clean_line(retry.reason)}"
    if turn.call.error:
        yield "red", f"{turn.call.error.kind}: {clean(turn.call.error.message)}"
    for message in turn.observations:
        yield from _message(message.role, blocks(message), full=full)


def _facts(call: ModelCall) -> str:
    parts = [f"{count(call.usage.total - call.usage.output)} in", f"{count(call.usage.output)} out"]
    parts.append(f"{call.timings.total_s:.2f} s")
    if call.finish_reason:
        parts.append(clean_line(call.finish_reason))
    return ", ".join(parts)


def _message(role: str, pieces: Iterator[Block], *, full: bool) -> Iterator[tuple[str, str]]:
    yield "magenta", f"\n[{clean_line(role, 40)}]"
    yield from _pieces(pieces, full=full)


def _pieces(pieces: Iterator[Block], *, full: bool) -> Iterator[tuple[str, str]]:
    for piece in pieces:
        text = piece.text.rstrip("\n") if full else shorten(piece.text, lines=_LINES)
        yield _STYLE[piece.kind], _MARK[piece.kind] + text


def _verdict(rollout: Rollout, *, full: bool) -> Iterator[tuple[str, str]]:
    if rollout.result is not None:
        stop = f"\n── stopped: {rollout.result.stop.value}"
        yield "bold", stop + (f" ({clean_line(rollout.result.message)})" if rollout.result.message else "")
        if rollout.result.answer:
            yield "", clean(rollout.result.answer)
    if rollout.reward is None:
        return
    where = ", judged in the agent's own sandbox" if rollout.reward.same_sandbox else ""
    score = "none" if rollout.reward.score is None else f"{rollout.reward.score:g}"
    yield "bold", f"\n── score {score}{where}"
    if rollout.reward.reason:
        yield "", clean(rollout.reward.reason)
    if rollout.reward.log:
        yield "dim", clean(rollout.reward.log) if full else shorten(clean(rollout.reward.log), lines=_LINES)
