"""A messages request as a chat completions request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from orchard_core.gateway.conversation import Conversation
from orchard_core.gateway.dialect import Translated
from orchard_core.gateway.json_text import JsonFault, dumps, loads
from orchard_core.gateway.messages.blocks import Message, Turns
from orchard_core.gateway.messages.tools import chat_tools

Fields = dict[str, Any]


def ask_chat(body: bytes, conversation: Conversation) -> Translated:
    """Translate one request. Fields that neither protocol knows pass as they are. Raises JsonFault."""
    try:
        return _ask(loads(body), conversation)
    except RecursionError:
        raise JsonFault("the JSON is nested too deeply") from None


def _ask(asked: object, conversation: Conversation) -> Translated:
    if not isinstance(asked, dict):
        raise JsonFault("the body must be a JSON object")
    given = {key: value for key, value in asked.items() if value is not None}
    dropped: Counter[str] = Counter()
    chat: Fields = {"model": given.pop("model", None)}
    turns = Turns(conversation.said.recall(), dropped)
    chat["messages"] = _messages(given.pop("system", None), given.pop("messages", None), turns)
    if "tools" in given or "tool_choice" in given:
        chat |= chat_tools(given.pop("tools", []), given.pop("tool_choice", None), dropped)
    for key, value in given.items():
        _FIELDS.get(key, _pass)(key, value, chat, dropped)
    if chat.get("stream") is True:
        chat["stream_options"] = {"include_usage": True}
    stops = given.get("stop_sequences")
    notes = {"stops": tuple(stops) if isinstance(stops, list) else ()}
    return Translated(body=dumps(chat), dropped=dict(dropped), notes=notes)


def _messages(system: object, messages: object, turns: Turns) -> list[Message]:
    if messages is None:
        raise JsonFault("`messages` is missing")
    if not isinstance(messages, list):
        raise JsonFault("`messages` must be an array")
    if not messages:
        raise JsonFault("`messages` must not be empty")
    first = [] if system is None else [turns.system(system)]
    told = [message for message in first if message["content"]]
    for place, message in enumerate(messages):
        told += turns.message(message, place)
    return told


def _pass(key: str, value: object, chat: Fields, dropped: Counter[str]) -> None:
    if key in chat or key in _CHAT_ONLY:
        dropped[key] += 1  # what it means here is not known, and there it would change the request
    else:
        chat[key] = value


_CHAT_ONLY = frozenset({"n", "stream_options", "functions", "function_call", "parallel_tool_calls"})


def _renamed(name: str) -> Callable[[str, object, Fields, Counter[str]], None]:
    def put(key: str, value: object, chat: Fields, dropped: Counter[str]) -> None:
        chat[name] = value

    return put


def _drop(key: str, value: object, chat: Fields, dropped: Counter[str]) -> None:
    dropped[key] += 1


def _output(key: str, value: object, chat: Fields, dropped: Counter[str]) -> None:
    """How the answer is to look, and how much thought it is worth."""
    if not isinstance(value, dict):
        raise JsonFault(f"`{key}` must be an object")
    for name, inner in value.items():
        if name == "effort" and isinstance(inner, str):
            chat["reasoning_effort"] = inner
        elif name == "format" and isinstance(inner, dict) and inner.get("type") == "json_schema":
            schema = {"name": "answer", "schema": inner.get("schema"), "strict": True}
            chat["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif inner is not None:
            dropped[f"{key}.{name}"] += 1


_FIELDS: dict[str, Callable[[str, object, Fields, Counter[str]], None]] = {
    "max_tokens": _renamed("max_completion_tokens"),
    "stop_sequences": _renamed("stop"),
    "output_config": _output,
    "cache_control": _drop,
    "container": _drop,
    "context_management": _drop,
    "inference_geo": _drop,
    "mcp_servers": _drop,
    "metadata": _drop,
    "service_tier": _drop,
    "speed": _drop,
    "thinking": _drop,
}
"""What becomes of the fields that are this dialect's own; `temperature`, `top_p`, `top_k`, `stream` and
whatever is not known pass."""
