"""Tools of the responses API as functions of chat completions, and their calls in both forms."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from orchard_core.gateway.json_text import JsonFault, loads

_FUNCTION = ("name", "description", "parameters", "strict")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """What a chat function was in the harness's request."""

    name: str
    """Its name there."""
    custom: bool = False
    """It takes free text and has no parameters; as a function it takes one string, `input`."""
    namespace: str | None = None
    """The group it stood in."""


def chat_name(name: str, namespace: object) -> str:
    """A tool's name as a function: chat knows no groups."""
    if not isinstance(namespace, str) or not namespace:
        return name
    return f"{namespace}{name}" if namespace.endswith("_") else f"{namespace}__{name}"


def chat_tools(tools: object, dropped: Counter[str]) -> tuple[list[dict[str, Any]], dict[str, Tool]]:
    """The functions, and what each of them was. A tool that the server itself would run is dropped.

    Raises JsonFault.
    """
    if not isinstance(tools, list):
        raise JsonFault("`tools` must be an array")
    functions: list[dict[str, Any]] = []
    known: dict[str, Tool] = {}
    for tool, namespace in _flattened(tools, dropped):
        function = _function(tool, dropped)
        if function is None:
            dropped[f"tools.{tool.get('type')}"] += 1
            continue
        name = function["name"]
        function["name"] = chat_name(name, namespace)
        functions.append({"type": "function", "function": function})
        known.setdefault(
            function["name"], Tool(name=name, custom=tool["type"] == "custom", namespace=namespace)
        )
    return functions, known


def _flattened(tools: list[Any], dropped: Counter[str]) -> Iterator[tuple[dict[str, Any], str | None]]:
    for tool in tools:
        if not isinstance(tool, dict):
            raise JsonFault("each of `tools` must be an object")
        if tool.get("type") != "namespace":
            yield tool, None
            continue
        inner, name = tool.get("tools"), tool.get("name")
        if not isinstance(inner, list) or not isinstance(name, str):
            raise JsonFault("a tool of type `namespace` needs a `name` and `tools`")
        _count(tool, ("type", "name", "tools"), "tools.namespace", dropped)
        for member in inner:
            if not isinstance(member, dict):
                raise JsonFault("each tool of a namespace must be an object")
            yield member, name


def _function(tool: Mapping[str, Any], dropped: Counter[str]) -> dict[str, Any] | None:
    """The tool as a function; None when it is none."""
    kind = tool.get("type")
    if kind not in ("function", "custom"):
        return None
    if not isinstance(tool.get("name"), str):
        raise JsonFault(f"a tool of type `{kind}` needs a `name`")
    if kind == "custom":
        _count(tool, ("type", "name", "description", "format"), "tools.custom", dropped)
        function = {key: tool[key] for key in ("name", "description") if tool.get(key) is not None}
        return {**function, "parameters": _free_text(tool.get("format"), dropped)}
    _count(tool, ("type", *_FUNCTION), "tools.function", dropped)
    return {key: tool[key] for key in _FUNCTION if tool.get(key) is not None}


def _free_text(form: object, dropped: Counter[str]) -> dict[str, Any]:
    """Parameters of a custom tool. Its grammar becomes words: chat cannot hold a model to one."""
    about: dict[str, Any] = {"type": "string"}
    if isinstance(form, dict) and form.get("type") == "grammar":
        dropped["tools.custom.format"] += 1
        about["description"] = f"Text of this {form.get('syntax')} grammar:\n{form.get('definition')}"
    return {
        "type": "object",
        "properties": {"input": about},
        "required": ["input"],
        "additionalProperties": False,
    }


def chat_choice(choice: object, known: Mapping[str, Tool], dropped: Counter[str]) -> object:
    """`tool_choice` as chat has it; None: chat cannot say it, which is counted."""
    if isinstance(choice, str):
        return choice
    if isinstance(choice, dict):
        if choice.get("type") in ("function", "custom") and isinstance(choice.get("name"), str):
            name = chat_name(choice["name"], choice.get("namespace"))
            if name in known:
                return {"type": "function", "function": {"name": name}}
        if choice.get("type") == "allowed_tools" and choice.get("mode") in ("auto", "required"):
            dropped["tool_choice.allowed_tools"] += 1
            return choice["mode"]
    dropped["tool_choice"] += 1
    return None


def custom_arguments(text: str) -> str:
    """Arguments of the function that stands for a custom tool, spaced as most models do it."""
    return json.dumps({"input": text}, ensure_ascii=False)


def custom_input(arguments: str) -> str:
    """The text for a custom tool. Arguments of another shape come as they are, for the harness to refuse."""
    try:
        said = loads(arguments)
    except JsonFault:
        return arguments
    text = said.get("input") if isinstance(said, dict) else None
    return text if isinstance(text, str) else arguments


def _count(value: Mapping[str, Any], kept: tuple[str, ...], where: str, dropped: Counter[str]) -> None:
    for key, inner in value.items():
        if key not in kept and inner is not None:
            dropped[f"{where}.{key}"] += 1
