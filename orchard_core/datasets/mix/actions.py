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
    """The first answer that could not be acted on."""


def faults(
    messages: Sequence[Message], names: frozenset[str], said: Callable[[str], object] | None
) -> Faults:
    """Look at each message once. `names` are the defined tools; `said` knows the words of a harness that
    could not act on an answer."""
    undefined = unparsable = ""
    after_answer = False
    for place, message in enumerate(messages):
        if message.get("role") == "assistant":
            after_answer = True
            calls = message.get("tool_calls")
            for name, arguments in _calls(calls) if calls else ():
                if name not in names and not undefined:
                    undefined = f"message {place} calls {name!r}, which its tools do not define"
                if not unparsable and not is_object(arguments):
                    unparsable = f"message {place}: the arguments of {name!r} are no JSON object"
        elif after_answer and not unparsable and said is not None and said(_head(message.get("content"))):
            unparsable = f"message {place}: the harness could not act on the answer before it"
    return Faults(undefined, unparsable)


def _calls(calls: object) -> list[tuple[str, object]]:
    """Name and arguments of each call; one that is none has no name and no arguments."""
    found: list[tuple[str, object]] = []
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            name = function.get("name")
            found.append((name if isinstance(name, str) else "", function.get("arguments")))
        else:
            found.append(("", None))
    return found


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


def speaks(globs: Sequence[str]) -> Callable[[str], object] | None:
    """What says whether one of the globs matches a text; None without any."""
    if not globs:
        return None
    return re.compile("|".join(map(translate, globs))).match


def _head(content: object) -> str:
    """The beginning of a message's text, without blanks around it."""
    if isinstance(content, str):
        return content[: 2 * _HEAD].strip()[:_HEAD]
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            text: str = part["text"]
            return text[: 2 * _HEAD].strip()[:_HEAD]
    return ""
