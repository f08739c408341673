"""The model as a harness in this process asks it: whole chat completions, through its endpoint."""

from __future__ import annotations

import json
from typing import Any

import aiohttp

from orchard_core.errors import ModelReplyMalformed, ModelTimeout, ModelUnavailable
from orchard_core.harness.answered import model_error
from orchard_core.types.model import ModelEndpoint


class ChatClient:
    """Asks for chat completions, each within `limit_s` seconds, waiting in the gateway included.

    It never retries: the gateway behind the endpoint does that.
    """

    def __init__(self, model: ModelEndpoint, *, limit_s: float = 1800.0) -> None:
        self._url = f"{model.base_url.rstrip('/')}/chat/completions"
        self._limit_s = limit_s
        self._headers = {"Authorization": f"Bearer {model.api_key}", "Content-Type": "application/json"}

    async def __aenter__(self) -> ChatClient:
        timeout = aiohttp.ClientTimeout(total=self._limit_s)
        self._http = aiohttp.ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar())
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._http.close()

    async def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer's body. Raises ModelError, of which ContextExceeded and BudgetExceeded are kinds."""
        data = json.dumps(request).encode()
        try:
            async with self._http.post(self._url, data=data, headers=self._headers) as response:
                body = await response.read()
        except TimeoutError as error:
            raise ModelTimeout(
                f"the model did not answer within {self._limit_s:g} s",
                limit_s=self._limit_s,
                hint="raise the harness's limit of a model call",
            ) from error
        except aiohttp.ClientError as error:
            raise ModelUnavailable(f"the model at {self._url} cannot be reached: {error}") from error
        if response.status != 200:
            raise model_error(response.status, body)
        return _completion(body)


def _completion(body: bytes) -> dict[str, Any]:
    """The answer, its shape checked so far that a harness can read message and calls without looking."""
    try:
        answer: dict[str, Any] = json.loads(body.decode("utf-8", "surrogatepass"))
        message = answer["choices"][0]["message"]
        message.setdefault("content", None)
        whole = all(isinstance(call["function"], dict) for call in message.get("tool_calls") or ())
        whole = whole and isinstance(message["content"], (str, list, type(None)))
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        raise ModelReplyMalformed(f"the answer is not a chat completion: {body[:200]!r}") from error
    if not whole:
        raise ModelReplyMalformed(f"the answer holds a malformed message: {body[:200]!r}")
    return answer
