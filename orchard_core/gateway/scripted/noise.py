"""Mistakes for an oracle: most can be recovered from, some cannot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from orchard_core.gateway.scripted.plan import Act, Move

_MISTAKES = (
    ("wrong_command", 3),
    ("typo", 2),
    ("unknown_tool", 1),
    ("broken_call", 1),
    ("early_submit", 3),
    ("skipped_step", 2),
)
"""Kinds and weights: the first four cost a turn, the last two mostly the task."""

_HARMLESS = (
    "ls /workspace/output/final",
    "cat ./notes-that-do-not-exist.txt",
    "grep -rn 'TODO: nothing says this' . | head -5",
    "find . -maxdepth 1 -name '*.unlikely'",
    "head -3 ./README.missing",
)


def noisy_moves(moves: Sequence[Move], *, rate: float, seed: str) -> tuple[Move, ...]:
    """The moves with mistakes put in. Each step draws for itself from (seed, its place), so the same
    rollout makes the same mistakes, however often a call is repeated."""
    found: list[Move] = []
    for place, move in enumerate(moves[:-1]):
        found.extend(_step(move, Random(f"{seed}/{place}"), rate))  # noqa: S311 - not a secret
        if found and found[-1].act is Act.FINISH:
            return tuple(found)
    return (*found, moves[-1])


def _step(move: Move, draw: Random, rate: float) -> Iterator[Move]:
    if draw.random() >= rate:
        yield move
        return
    kinds, weights = zip(*_MISTAKES, strict=True)
    match draw.choices(kinds, weights)[0]:
        case "early_submit":
            yield Move(act=Act.FINISH, thought=_said(move, "That should be enough."))
        case "skipped_step":
            return
        case kind:
            yield _detour(kind, move, draw)
            yield move


def _detour(kind: str, move: Move, draw: Random) -> Move:
    if kind == "typo":
        return Move(act=Act.RUN, thought=move.thought, text=_misspelt(move.text, draw))
    act = {"unknown_tool": Act.UNKNOWN_TOOL, "broken_call": Act.BROKEN_CALL}.get(kind, Act.RUN)
    return Move(act=act, thought=_said(move, "Let me look around first."), text=draw.choice(_HARMLESS))


def _misspelt(command: str, draw: Random) -> str:
    """The command's first word misspelt, and nothing of the rest, so that it cannot do harm."""
    words = [word for word in command.split() if word.isalpha() and len(word) > 2]
    word = words[0] if words else "ls"
    at = draw.randrange(len(word) - 1)
    return f"{word[:at]}{word[at + 1]}{word[at]}{word[at + 2 :]}x --version"


def _said(move: Move, thought: str) -> str:
    return thought if move.thought else ""
