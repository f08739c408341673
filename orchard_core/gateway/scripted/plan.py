"""What an oracle will do, move by move, and how far a conversation has come."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchard_core.gateway.scripted.conversation import Conversation, Json, calls_of, text_of
from orchard_core.gateway.scripted.interface import Interface
from orchard_core.gateway.scripted.reply import Reply
from orchard_core.types.task import Solution

_OUR_ID = re.compile(r"^call_(\d{6})$")
_LEAKY = re.compile(r"(^|[\s;&|(])(cd|pushd|exit|set|export|exec|source|trap|ulimit|umask)\b")


class Act(StrEnum):
    """Kinds of move."""

    RUN = "run"
    """Run a command."""
    FINISH = "finish"
    """End the episode."""
    UNKNOWN_TOOL = "unknown_tool"
    """Call a tool that does not exist."""
    BROKEN_CALL = "broken_call"
    """Make a call that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One answer of an oracle."""

    act: Act
    """What it does."""
    thought: str
    """What it says before."""
    text: str = ""
    """The command, or the final answer."""


def gold_moves(solution: Solution, *, thoughts: bool) -> tuple[Move, ...]:
    """A known solution, one command a move, and the end."""
    count = len(solution.steps)
    steps = [
        Move(
            act=Act.RUN,
            thought=(step.thought or f"Step {place} of {count}.") if thoughts else "",
            text=_contained(step.command),
        )
        for place, step in enumerate(solution.steps, 1)
    ]
    end = Move(act=Act.FINISH, thought="The task is done." if thoughts else "", text=solution.answer)
    return (*steps, end)


def answer_to(conversation: Conversation, moves: Sequence[Move]) -> Reply:
    """The next move's answer. After the last move, the last one again."""
    interface = Interface.of(conversation)
    if not interface.acts:
        return Reply(text=moves[-1].text or "Done.")
    position = min(played(conversation, moves, interface), len(moves) - 1)
    return rendered(moves[position], _call_id(position), interface)


def played(conversation: Conversation, moves: Sequence[Move], interface: Interface) -> int:
    """How many moves the conversation holds already.

    Our own call ids tell; where a harness dropped them, or calls are text, the answer itself is found
    again. A conversation that lost its beginning is thus understood as well.
    """
    position = 0
    faces: list[str] = []
    for message in conversation.answers:
        if (told := _told(message)) is not None:
            position = max(position, min(told, len(moves)))
            continue
        faces = faces or [face(rendered(move, "", interface).message(0)) for move in moves]
        said = face(message)
        position = next((i + 1 for i in range(position, len(moves)) if faces[i] == said), position)
    return position


def rendered(move: Move, call_id: str, interface: Interface) -> Reply:
    """A move as this harness understands it."""
    match move.act:
        case Act.RUN:
            return interface.run(move.thought, move.text, call_id)
        case Act.FINISH:
            return interface.finished(move.thought, move.text, call_id)
        case Act.UNKNOWN_TOOL:
            name = f"{interface.shell.name}_tool" if interface.shell else "run_tool"
            return interface.unfenced().call(move.thought, name, {"command": move.text}, call_id)
        case Act.BROKEN_CALL:
            name = interface.shell.name if interface.shell else "run"
            return interface.unfenced().call(move.thought, name, f'{{"command": "{move.text}', call_id)


def _told(message: Json) -> int | None:
    """One past the highest move that the message's call ids name."""
    found = [int(match[1]) + 1 for call_id, _, _ in calls_of(message) if (match := _OUR_ID.match(call_id))]
    return max(found, default=None)


def _call_id(position: int) -> str:
    return f"call_{position:06d}"


def face(message: Json) -> str:
    """What a message does, however its arguments were written down again."""
    calls = [f"{name}({_plain(arguments)})" for _, name, arguments in calls_of(message)]
    return "\n".join(calls) if calls else text_of(message).strip()


def _plain(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments


def _contained(command: str) -> str:
    """Wrap what would outlive its command in a shell that lives on, such as `cd`: steps share only files."""
    return f"(\n{command.rstrip()}\n)" if _LEAKY.search(command) else command
