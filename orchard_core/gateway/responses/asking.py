"""A responses request as a chat completions request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from orchard_core.gateway.dialect import Translated
from orchard_core.gateway.json_text import JsonFault, dumps, loads
from orchard_core.gateway.responses.items import chat_messages
from orchard_core.gateway.responses.tools import chat_choice, chat_tools

Fields = dict[str, Any]


def ask_chat(body: bytes) -> Translated:
    """Translate one request. Fields that neither protocol knows pass as they are. Raises JsonFault."""
    asked = loads(body)
    if not isinstance(asked, dict):
        raise JsonFault("the body must be a JSON object")
    asked = {key: value for key, value in asked.items() if value is not None}
    _refuse(asked)
    dropped: Counter[str] = Counter()
    chat: Fields = {"model": asked.pop("model", None)}
    chat["messages"] = chat_messages(asked.pop("instructions", None), asked.pop("input", None), dropped)
    known = _tools(asked, chat, dropped)
    for key, value in asked.items():
        _FIELDS.get(key, _pass)(key, value, chat, dropped)
    if chat.get("stream") is True:
        chat["stream_options"] = {"include_usage": True}
    return Translated(body=dumps(chat), dropped=dict(dropped), notes={"tools": known})


def _refuse(asked: Fields) -> None:
    """What only a server with a memory could do."""
    for key in ("previous_response_id", "conversation", "prompt"):
        if key in asked:
            raise JsonFault(f"`{key}` names what this gateway does not keep: send the whole input instead")
    if asked.get("background", False) is not False:
        raise JsonFault("`background` cannot be served: wait for the answer, or stream it")


def _tools(asked: Fields, chat: Fields, dropped: Counter[str]) -> Fields:
    """Tools and what belongs to them; without a tool, chat servers refuse the rest."""
    functions, known = chat_tools(asked.pop("tools", []), dropped)
    choice, parallel = asked.pop("tool_choice", None), asked.pop("parallel_tool_calls", None)
    if not functions:
        dropped.update(_said({"tool_choice": choice, "parallel_tool_calls": parallel}).keys())
        return {}
    chat["tools"] = functions
    if choice is not None:
        chat |= _said({"tool_choice": chat_choice(choice, known, dropped)})
    chat |= _said({"parallel_tool_calls": parallel})
    return dict(known)


def _said(fields: Fields) -> Fields:
    return {key: value for key, value in fields.items() if value is not None}


def _pass(key: str, value: object, chat: Fields, dropped: Counter[str]) -> None:
    if key in chat or key in ("messages", "stream_options", "n"):
        dropped[key] += 1
    else:
        chat[key] = value


def _drop(key: str, value: object, chat: Fields, dropped: Counter[str]) -> None:
    if (key, value) not in _IDLE:
        dropped[key] += 1


_IDLE: tuple[tuple[str, object], ...] = (
    ("store", False), ("truncation", "disabled"), ("background", False), ("include", []), ("metadata", {}),
)  # fmt: skip
"""What chat does anyway."""


def _limit(key: str, value: object, chat: Fields, dropped: Counter[str]) -> None:
    chat["max_completion_tokens"] = value


def _include(key: str, value: object, chat: Fields, dropped: Counter[str]) -> None:
    wanted = value if isinstance(value, list) else [value]
    dropped.update(f"include.{name}" for name in wanted if name != "reasoning.encrypted_content")


def _reasoning(key: str, value: object, chat: Fields, dropped: Counter[str]) -> None:
    """Whatever summary is asked for, the reasoning is given whole."""
    if not isinstance(value, dict):
        raise JsonFault("`reasoning` must be an object")
    said = _said(value)
    if "effort" in said:
        chat["reasoning_effort"] = said["effort"]
    dropped.update(f"reasoning.{name}" for name in said if name not in ("effort", "summary"))


def _text(key: str, value: object, chat: Fields, dropped: Counter[str]) -> None:
    if not isinstance(value, dict):
        raise JsonFault("`text` must be an object")
    said = _said(value)
    form = said.pop("format", {"type": "text"})
    if not isinstance(form, dict):
        raise JsonFault("`text.format` must be an object")
    if form.get("type") == "json_schema":
        inner = {name: inner for name, inner in form.items() if name != "type" and inner is not None}
        chat["response_format"] = {"type": "json_schema", "json_schema": inner}
    elif form.get("type") != "text":
        chat["response_format"] = form
    if "verbosity" in said:
        chat["verbosity"] = said.pop("verbosity")
    dropped.update(f"text.{name}" for name in said)


_FIELDS: dict[str, Callable[[str, object, Fields, Counter[str]], None]] = {
    "max_output_tokens": _limit,
    "include": _include,
    "reasoning": _reasoning,
    "text": _text,
    **dict.fromkeys(
        (
            "background", "client_metadata", "context_management", "max_tool_calls", "metadata",
            "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "safety_identifier",
            "store", "stream_options", "top_logprobs", "truncation",
        ),
        _drop,
    ),
}  # fmt: skip
