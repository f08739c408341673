"""Reading a judge's answer: a JSON array of key steps and nothing else, never guessed from other text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any, NoReturn

from orchard_core.rollout.text import excerpt
from orchard_core.types.credit import ValuePoint

REASON_CHARS = 500
"""A longer reason is cut."""
_LONGEST = 1_000_000
_MEMBERS = {"turn", "value", "reason"}
_THOUGHT = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
_FENCE = re.compile(r"\s*```(?:json)?[ \t]*\n(.*?)\n?```\s*", re.DOTALL)


class AnswerFault(ValueError):
    """The answer is not what was asked for; the message tells the judge, and people, what is wrong."""


def key_steps(text: str, turns: int) -> tuple[ValuePoint, ...]:
    """The key steps of a rollout with `turns` answers, in order of turns. Raises AnswerFault.

    A thought in `<think>` before the array, as some servers leave it in, and one code fence around it are
    taken off; any other text beside it is a fault.
    """
    if len(text) > _LONGEST:
        raise AnswerFault(f"it is {len(text)} characters long")
    bare = _THOUGHT.sub("", text, count=1) if _THOUGHT.match(text) else text
    fenced = _FENCE.fullmatch(bare)
    steps = _array(fenced[1] if fenced else bare)
    points = sorted((_point(step, turns) for step in steps), key=lambda point: point.turn)
    doubled = {
        point.turn for place, point in enumerate(points) if place and points[place - 1].turn == point.turn
    }
    if doubled:
        raise AnswerFault(f"turn {min(doubled)} occurs more than once")
    return tuple(points)


def _array(text: str) -> list[Any]:
    try:
        steps = json.loads(text, parse_constant=_no_number, object_pairs_hook=_once)
    except AnswerFault:
        raise
    except (ValueError, RecursionError) as error:
        raise AnswerFault(f"it is not JSON ({error})" if text.strip() else "it is empty") from None
    if not isinstance(steps, list):
        raise AnswerFault("it is not a JSON array")
    if not steps:
        raise AnswerFault("it names no key step")
    return steps


def _once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise AnswerFault(f"a member {name[:40]!r} stands twice in one object")
        members[name] = value
    return members


def _no_number(constant: str) -> NoReturn:
    raise AnswerFault(f"{constant} is no number")


def _point(step: Any, turns: int) -> ValuePoint:
    if not isinstance(step, dict) or step.keys() != _MEMBERS:
        raise AnswerFault('an element is not an object with exactly "turn", "value" and "reason"')
    turn, value, reason = step["turn"], step["value"], step["reason"]
    if not isinstance(turn, int) or isinstance(turn, bool) or not 0 <= turn <= turns:
        raise AnswerFault(f"turn {_shown(turn)} is no integer from 0 to {turns}")
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise AnswerFault(f"the value of turn {turn} is no number")
    if not (0 <= value <= 1 and math.isfinite(value)):
        raise AnswerFault(f"the value of turn {turn}, {_shown(value)}, is not from 0 to 1")
    if not isinstance(reason, str):
        raise AnswerFault(f"the reason of turn {turn} is no text")
    return ValuePoint(turn=turn, value=float(value), reason=excerpt(reason, REASON_CHARS))


def _shown(value: object) -> str:
    try:
        return repr(value)[:40]
    except ValueError:  # an integer of thousands of digits
        return "of thousands of digits"
