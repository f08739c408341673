"""What the answers of a conversation do, as far as the filters ask."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from orchard_core.errors import DatasetCorrupt

_HEAD = 500
"""Characters of a message in which a harness's words are looked for."""

_WILD = re.compile(r"[*?[]")

Message = Mapping[str, Any]


def parsed(text: str, *, field: str, path: str) -> list[dict[str, Any]]:
    """A row's `messages` or `tools`. Raises DatasetCorrupt for what is no list of objects."""
    try:
        value = loads(text)
    except (ValueError, RecursionError) as error:
        raise DatasetCorrupt(f"is not JSON: {error}", path=path, field=field) from None
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise DatasetCorrupt("is not a JSON array of objects", path=path, field=field)
    return value


def loads(text: str) -> Any:
    """JSON; a lone surrogate, which the fast reader refuses, is read by the slow one."""
    try:
        return orjson.loads(text)
    except (ValueError, RecursionError):
        return json.loads(text)


def defined(tools: Sequence[Message]) -> frozenset[str]:
    """Names of a row's tools, in OpenAI's shape or bare."""
    names = set()
    for tool in tools:
        function = tool.get("function")
        name = (function if isinstance(function, dict) else tool).get("name")
        if isinstance(name, str):
            names.add(name)
    return frozenset(names)


@lru_cache(maxsize=256)
def defined_in(tools: str) -> frozenset[str]:
    """The same of their JSON text: rows of one harness share it. Raises DatasetCorrupt."""
    return defined(parsed(tools, field="tools", path=""))


class Faults(NamedTuple):
    """What is wrong with the answers of a conversation, in words; empty: nothing."""

    undefined: str = ""
    """The first call of a tool that is not defined."""
    unparsable: str = ""
    """The first call that no one can read, or the first trained answer that could not be acted on."""


Said = Callable[[object], object]
"""Whether the content of a message is what a harness says that could not act on an answer."""


def faults(
    messages: Sequence[Message], mask: Sequence[int], names: frozenset[str], said: Said | None
) -> Faults:
    """Look at each message once. `names` are the defined tools; `said` is None where nobody asks for it."""
    undefined = unparsable = ""
    answer = -1
    for place, message in enumerate(messages):
        if message.get("role") == "assistant":
            answer = place
            calls = message.get("tool_calls")
            for name, arguments in map(_call, calls) if isinstance(calls, list) else ():
                if name not in names and not undefined:
                    undefined = f"message {place} calls {name!r}, which its tools do not define"
                if not unparsable and not is_object(arguments):
                    unparsable = f"message {place}: the arguments of {name!r} are no JSON object"
        elif (
            answer >= 0 and mask[answer] and not unparsable and said is not None
            and said(message.get("content")) and _replies(messages, place, answer)
        ):  # fmt: skip
            unparsable = f"message {place}: the harness could not act on the answer before it"
    return Faults(undefined, unparsable)


def _replies(messages: Sequence[Message], place: int, answer: int) -> bool:
    """Whether a message is about the answer before it. One that comes when the answer, or each of its calls,
    has its reply is about another, which the harness gave up and left out."""
    calls = messages[answer].get("tool_calls")
    calls = calls if isinstance(calls, list) else []
    told = messages[place].get("tool_call_id")
    if told is not None and any(isinstance(call, dict) and call.get("id") == told for call in calls):
        return True
    return place - answer <= max(1, len(calls))


def _call(call: object) -> tuple[str, object]:
    """Name and arguments of a call; one that is none has no name and no arguments."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return "", None
    name = function.get("name")
    return name if isinstance(name, str) else "", function.get("arguments")


def is_object(arguments: object) -> bool:
    """Whether a call's arguments can be acted on; none at all are an empty object."""
    if isinstance(arguments, dict) or arguments is None:
        return True
    if not isinstance(arguments, str):
        return False
    try:
        return isinstance(loads(arguments), dict)
    except (ValueError, RecursionError):
        return not arguments.strip()


def speaks(globs: Sequence[str]) -> Said | None:
    """What says whether one of the globs matches the beginning of a message's text, blanks around it aside;
    None without any."""
    if not globs:
        return None
    match = re.compile("|".join(map(translate, globs))).match
    begins = tuple(_WILD.split(glob, maxsplit=1)[0] for glob in globs)

    def said(content: object) -> object:
        if isinstance(content, str) and not content.lstrip().startswith(begins):
            return None  # as nearly all: the pattern takes longer to say so
        return match(_head(content))

    return said


def _head(content: object) -> str:
    """The beginning of a message's text, without blanks around it."""
    if isinstance(content, str):
        return content[: 2 * _HEAD].strip()[:_HEAD]
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            text: str = part["text"]
            return text[: 2 * _HEAD].strip()[:_HEAD]
    return ""
