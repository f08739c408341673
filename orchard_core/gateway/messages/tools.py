"""Tools of the messages dialect as chat functions, and the choice among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from orchard_core.gateway.json_text import JsonFault

Fields = dict[str, Any]

_KNOWN = frozenset({"type", "name", "description", "input_schema", "strict"})


def chat_tools(tools: object, choice: object, dropped: Counter[str]) -> Fields:
    """`tools`, `tool_choice` and `parallel_tool_calls` of the chat request; without a function that is left,
    none of them. Raises JsonFault."""
    if not isinstance(tools, list):
        raise JsonFault("`tools` must be an array")
    functions = list(_functions(tools, dropped))
    if not functions:
        dropped.update(["tool_choice"] if choice is not None else [])
        return {}
    return {"tools": functions, **(_choice(choice, dropped) if choice is not None else {})}


def _functions(tools: list[object], dropped: Counter[str]) -> Iterator[Fields]:
    """Tools that run on Anthropic's servers or have a schema only its models know are left out."""
    for tool in tools:
        if not isinstance(tool, dict) or not isinstance(tool.get("name", ""), str):
            raise JsonFault("`tools` holds what is no tool: each is an object with a `name`")
        if "input_schema" not in tool:
            dropped[f"tools.{tool.get('type', 'custom')}"] += 1
            continue
        dropped.update(f"tools.{name}" for name in tool if name not in _KNOWN and tool[name] is not None)
        function = {"name": tool.get("name", "")}
        if isinstance(tool.get("description"), str):
            function["description"] = tool["description"]
        function["parameters"] = tool["input_schema"]
        if tool.get("strict") is not None:
            function["strict"] = tool["strict"]
        yield {"type": "function", "function": function}


def _choice(choice: object, dropped: Counter[str]) -> Fields:
    if not isinstance(choice, dict):
        raise JsonFault("`tool_choice` must be an object")
    fields: Fields = {}
    match choice.get("type"):
        case "auto" | "none" as same:
            fields["tool_choice"] = same
        case "any":
            fields["tool_choice"] = "required"
        case "tool":
            fields["tool_choice"] = {"type": "function", "function": {"name": choice.get("name", "")}}
        case kind:
            dropped[f"tool_choice.{kind}"] += 1
    if choice.get("disable_parallel_tool_use") is not None:
        fields["parallel_tool_calls"] = not choice["disable_parallel_tool_use"]
    return fields
