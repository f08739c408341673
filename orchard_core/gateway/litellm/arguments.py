"""A harness's request as arguments of LiteLLM.

LiteLLM takes its own settings as arguments beside the model's parameters: addresses, keys, files to read. A
harness is not to be trusted with them, so that only names known to be parameters are passed as such.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from orchard_core.errors import ModelRejected
from orchard_core.gateway.json_text import JsonFault, dumps_ascii, loads

PARAMETERS = frozenset(
    {
        "audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs",
        "max_completion_tokens", "max_tokens", "modalities", "n", "parallel_tool_calls", "prediction",
        "presence_penalty", "reasoning_effort", "response_format", "safety_identifier", "seed",
        "service_tier", "stop", "store", "temperature", "thinking", "tool_choice", "tools",
        "top_logprobs", "top_p", "user", "verbosity", "web_search_options",
    }
)  # fmt: skip
"""What LiteLLM knows of chat completions. Anything else goes into the body as it is."""

_OURS = frozenset({"model", "messages", "stream", "stream_options"})
_ADDRESS = re.compile(r"[\s\0]*(?!data:)[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def arguments(body: bytes) -> dict[str, Any]:
    """Messages and parameters. Raises ModelRejected."""
    try:
        asked = loads(body)
    except JsonFault as fault:
        raise _refused(f"the request is not JSON: {fault}") from None
    messages = asked.get("messages") if isinstance(asked, dict) else None
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise _refused("the request needs `messages`, an array of objects")
    for address in _addresses(messages):
        raise _refused(f"{address[:100]!r} would be fetched from this machine: send the data itself")
    if any(isinstance(tool, dict) and tool.get("type") == "mcp" for tool in asked.get("tools") or ()):
        raise _refused("tools of type `mcp` would be run on this machine")
    known = {key: value for key, value in asked.items() if key in PARAMETERS and value is not None}
    rest = {key: value for key, value in asked.items() if key not in PARAMETERS | _OURS}
    return {"messages": messages, **known, **({"extra_body": rest} if rest else {})}


def _addresses(messages: list[dict[str, Any]]) -> Iterator[str]:
    """Addresses of images and files: LiteLLM fetches them itself for vendors that do not."""
    for message in messages:
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and part.get("type") != "text":
                yield from (text for text in _strings(part) if _is_address(text))


def _is_address(text: str) -> bool:
    """LiteLLM looks for `https:/` anywhere in the text; the data of a data URL cannot hold it."""
    return ":/" in text or _ADDRESS.match(text) is not None


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


def _refused(words: str) -> ModelRejected:
    error = {"message": words, "type": "invalid_request_error", "param": None, "code": "invalid_request"}
    return ModelRejected(words, status=400, body=dumps_ascii({"error": error}))
