"""Mistakes for an oracle: most can be recovered from, some cannot.

The noisy oracle is a Markov policy: what it does next depends on the seed and on the place it has come to,
which is read off the conversation. A conversation begun with one seed thus goes on with another as if it had
been in that state from the first. Where to go on is told by the call ids, and by the answers themselves where
a harness drops ids: each detour names the step it comes before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from random import Random

from orchard_core.gateway.scripted.conversation import Conversation, Json, calls_of
from orchard_core.gateway.scripted.interface import Interface
from orchard_core.gateway.scripted.plan import Act, Move, face, rendered
from orchard_core.gateway.scripted.reply import Reply

MISTAKES: Mapping[str, int] = {
    "wrong_command": 3,
    "typo": 2,
    "unknown_tool": 1,
    "broken_call": 1,
    "early_submit": 3,
    "skipped_step": 2,
}
"""Kinds and weights: the first four cost a turn (a detour), the last two mostly the task."""

_HARMLESS = (
    "ls /workspace/output/final",
    "cat ./notes-that-do-not-exist.txt",
    "grep -rn 'TODO: nothing says this' . | head -5",
    "find . -maxdepth 1 -name '*.unlikely'",
    "head -3 ./README.missing",
)
_OUR_ID = re.compile(r"^call_(\d{4})(0[0-2])$")
_DETOUR = re.compile(r"# before step (\d{1,4})\b")


class Did(IntEnum):
    """What an answer was, as its call id tells."""

    STEP = 0
    """A step of the solution."""
    DETOUR = 1
    """A mistake that cost a turn; the step itself comes next."""
    END = 2
    """The end of the episode; asked again, it ends it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """One answer of a noisy oracle."""

    place: int
    """The step of the solution that it plays, comes before, or would have been next."""
    did: Did
    """What it is."""
    move: Move
    """What it does."""

    @property
    def call_id(self) -> str:
        """PPPPDD: the place, and what was done."""
        return f"call_{self.place:04d}{self.did:02d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A state of the policy."""

    place: int
    """The step of the solution to play next."""
    last: Did = Did.STEP
    """What the last answer was."""


def noisy_answer(conversation: Conversation, gold: Sequence[Move], *, rate: float, seed: str) -> Reply:
    """The answer to a conversation; `gold` holds the solution's moves, the end last."""
    interface = Interface.of(conversation)
    if not interface.acts:
        return Reply(text=gold[-1].text or "Done.")
    deed = next_deed(gold, progress(conversation, gold, interface), rate=rate, seed=seed)
    return rendered(deed.move, deed.call_id, interface)


def next_deed(gold: Sequence[Move], state: Progress, *, rate: float, seed: str) -> Deed:
    """What is done in a state. Each step draws for itself from (seed, its place), so the same rollout makes
    the same mistakes, however often a call is repeated; after a detour the step itself is certain."""
    end = len(gold) - 1
    if state.last is Did.END:
        return _end(gold, state.place)
    if state.last is Did.DETOUR and state.place < end:
        return Deed(place=state.place, did=Did.STEP, move=gold[state.place])
    for place in range(state.place, end):
        draw = Random(f"{seed}/{place}")  # noqa: S311 - not a secret
        if draw.random() >= rate:
            return Deed(place=place, did=Did.STEP, move=gold[place])
        match draw.choices(list(MISTAKES), list(MISTAKES.values()))[0]:
            case "early_submit":
                return _end(gold, place)
            case "skipped_step":
                continue
            case kind:
                return Deed(place=place, did=Did.DETOUR, move=_detour(kind, gold[place], place, draw))
    return _end(gold, end)


def progress(conversation: Conversation, gold: Sequence[Move], interface: Interface) -> Progress:
    """The state that a conversation is in. One that lost its beginning is understood as well."""
    state = Progress(place=0)
    ends: frozenset[str] = frozenset()
    faces: list[str] = []
    for message in conversation.answers:
        told = _told(message)
        if told is None:
            faces = faces or [face(rendered(move, "", interface).message(0)) for move in gold[:-1]]
            ends = ends or frozenset(_end_faces(gold, interface))
            told = _recalled(face(message), state, faces, ends)
        if told is not None and told.place >= state.place:
            state = told
    return state


def _told(message: Json) -> Progress | None:
    """What our own call ids say."""
    found = [match for call_id, _, _ in calls_of(message) if (match := _OUR_ID.match(call_id))]
    states = [_after(int(match[1]), Did(int(match[2]))) for match in found]
    return max(states, key=lambda state: (state.place, state.last), default=None)


def _recalled(said: str, state: Progress, faces: Sequence[str], ends: frozenset[str]) -> Progress | None:
    """What an answer says of itself; None: it is none of ours."""
    for place in range(state.place, len(faces)):
        if faces[place] == said:
            return _after(place, Did.STEP)
    if (match := _DETOUR.search(said)) is not None:
        return _after(int(match[1]) - 1, Did.DETOUR)
    return _after(state.place, Did.END) if said in ends else None


def _after(place: int, did: Did) -> Progress:
    return Progress(place=place + (did is Did.STEP), last=did)


def _end_faces(gold: Sequence[Move], interface: Interface) -> list[str]:
    return [face(rendered(_end(gold, place).move, "", interface).message(0)) for place in {0, len(gold) - 1}]


def _end(gold: Sequence[Move], place: int) -> Deed:
    if place >= len(gold) - 1:
        return Deed(place=place, did=Did.END, move=gold[-1])
    move = Move(act=Act.FINISH, thought=_said(gold[0], "That should be enough."))
    return Deed(place=place, did=Did.END, move=move)


def _detour(kind: str, move: Move, place: int, draw: Random) -> Move:
    mark = f"  # before step {place + 1}"
    if kind == "typo":
        return Move(act=Act.RUN, thought=move.thought, text=_misspelt(move.text, draw) + mark)
    act = {"unknown_tool": Act.UNKNOWN_TOOL, "broken_call": Act.BROKEN_CALL}.get(kind, Act.RUN)
    return Move(act=act, thought=_said(move, "Let me look around first."), text=draw.choice(_HARMLESS) + mark)


def _misspelt(command: str, draw: Random) -> str:
    """The command's first word misspelt, and nothing of the rest, so that it cannot do harm."""
    words = [word for word in command.split() if word.isalpha() and len(word) > 2]
    word = words[0] if words else "ls"
    at = draw.randrange(len(word) - 1)
    return f"{word[:at]}{word[at + 1]}{word[at]}{word[at + 2 :]}x --version"


def _said(move: Move, thought: str) -> str:
    return thought if move.thought else ""
