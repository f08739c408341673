"""One chat completion over HTTP, as the simplest harness makes it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import aiohttp

from orchard_core.errors import ModelRejected, ModelReplyMalformed, ModelUnavailable
from orchard_core.types.model import ModelEndpoint


async def chat(
    endpoint: ModelEndpoint,
    messages: Sequence[Mapping[str, Any]],
    *,
    tools: Sequence[Mapping[str, Any]] = (),
    timeout_s: float = 60.0,
) -> Mapping[str, Any]:
    """The answer's message. Raises ModelRejected (4xx), ModelUnavailable, ModelReplyMalformed."""
    body: dict[str, Any] = {"model": endpoint.model, "messages": list(messages)}
    if tools:
        body["tools"] = list(tools)
    headers = {"Authorization": f"Bearer {endpoint.api_key}"}
    total = aiohttp.ClientTimeout(total=timeout_s)
    try:
        async with (
            aiohttp.ClientSession(timeout=total) as session,
            session.post(f"{endpoint.base_url}/chat/completions", json=body, headers=headers) as answer,
        ):
            text = await answer.text()
            status = answer.status
    except (aiohttp.ClientError, TimeoutError) as error:
        raise ModelUnavailable(f"{endpoint.base_url} could not be reached: {error!r}") from error
    if status >= 500:
        raise ModelUnavailable(f"{endpoint.base_url} answered {status}: {text[:500]}")
    if status >= 400:
        raise ModelRejected(f"{endpoint.base_url} answered {status}", status=status, body=text)
    return _message(text)


def _message(text: str) -> Mapping[str, Any]:
    try:
        message = json.loads(text)["choices"][0]["message"]
    except (ValueError, LookupError, TypeError) as error:
        raise ModelReplyMalformed(f"not a chat completion: {text[:200]}") from error
    if not isinstance(message, dict):
        raise ModelReplyMalformed(f"not a chat message: {text[:200]}")
    return message
