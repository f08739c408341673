"""From a call as the model wrote it to a tool and arguments that fit it, or words that help."""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import NoReturn

from pydantic import JsonValue

from orchard_core import Tool
from orchard_harness_react.content import utf8
from orchard_harness_react.protocol import Call
from orchard_harness_react.schema import mismatch

Arguments = Mapping[str, JsonValue]


class Malformed(Exception):
    """A call that cannot be carried out; the message is for the model."""


def checked(call: Call, tools: Mapping[str, Tool]) -> tuple[Tool, Arguments]:
    """The tool and its arguments. Raises Malformed."""
    if call.problem:
        raise Malformed(utf8(call.problem))
    tool = tools.get(call.name) or _unknown(call.name, tools)
    arguments = _object(call, tool)
    if problem := mismatch(dict(arguments), tool.parameters):
        raise Malformed(f"The arguments of {tool.name} do not fit: {utf8(problem)}. {_signature(tool)}")
    return tool, arguments


def _unknown(name: str, tools: Mapping[str, Tool]) -> NoReturn:
    folded = {known.lower(): known for known in tools}
    close = get_close_matches(name.lower()[:64], folded, n=1, cutoff=0.5)
    guess = f" Did you mean {folded[close[0]]}?" if close else ""
    known = ", ".join(sorted(tools)) or "none"
    raise Malformed(f"There is no tool {utf8(name)[:64]!r}.{guess} The tools are: {known}.")


def _object(call: Call, tool: Tool) -> Arguments:
    try:
        arguments = json.loads(call.arguments or "{}", parse_constant=_refuse, strict=False)
        json.dumps(arguments, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise Malformed(
            f"The arguments of {tool.name} hold half of a surrogate pair, which no text can carry. "
            "Write the character itself, or leave it out."
        ) from error
    except (ValueError, RecursionError) as error:
        raise Malformed(
            f"The arguments of {tool.name} are not JSON: {utf8(str(error))}. {_signature(tool)}"
        ) from error
    if isinstance(arguments, dict):
        return arguments
    raise Malformed(f"The arguments of {tool.name} must be a JSON object. {_signature(tool)}")


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def _signature(tool: Tool) -> str:
    """What the tool takes, in a line: `bash takes command (string), timeout_s (number, optional).`"""
    properties, required = tool.parameters.get("properties"), tool.parameters.get("required")
    names = properties if isinstance(properties, dict) else {}
    needed = required if isinstance(required, list) else []
    parts = [
        f"{name} ({_kind(schema)}{'' if name in needed else ', optional'})" for name, schema in names.items()
    ]
    return f"{tool.name} takes {', '.join(parts) or 'no arguments'}."


def _kind(schema: JsonValue) -> str:
    kind = schema.get("type") if isinstance(schema, dict) else None
    return kind if isinstance(kind, str) else "any"
