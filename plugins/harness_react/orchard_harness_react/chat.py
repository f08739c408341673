"""The model, reached through the one endpoint a harness is given."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import aiohttp
from pydantic import JsonValue

from orchard_core import ModelEndpoint, ModelReplyMalformed, ModelTimeout, ModelUnavailable
from orchard_harness_react.config import ReactConfig
from orchard_harness_react.protocol import Answer, Message
from orchard_harness_react.refusal import refusal
from orchard_harness_react.stream import assembled


class Chat:
    """Asks for chat completions. It never retries: the gateway behind the endpoint does that."""

    def __init__(self, model: ModelEndpoint, config: ReactConfig, fields: Mapping[str, JsonValue]) -> None:
        self._url = f"{model.base_url.rstrip('/')}/chat/completions"
        self._fields = {"model": model.model, **fields, **config.sampling()}
        if config.stream:
            self._fields |= {"stream": True, "stream_options": {"include_usage": True}}
        self._stream = config.stream
        self._limit_s = config.model_timeout_s
        self._headers = {"Authorization": f"Bearer {model.api_key}", "Content-Type": "application/json"}

    async def __aenter__(self) -> Chat:
        timeout = aiohttp.ClientTimeout(total=self._limit_s)
        self._http = aiohttp.ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar())
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._http.close()

    async def ask(self, messages: Sequence[Message]) -> Answer:
        """The next answer. Raises ModelError, and ContextExceeded when the conversation is too long."""
        body = json.dumps({**self._fields, "messages": list(messages)})
        try:
            async with self._http.post(self._url, data=body.encode(), headers=self._headers) as response:
                if response.status != 200:
                    raise refusal(response.status, await response.read())
                if self._stream:
                    return await assembled(response.content.iter_any())
                return _answer(await response.read())
        except TimeoutError as error:
            raise ModelTimeout(
                f"the model did not answer within {self._limit_s:g} s",
                limit_s=self._limit_s,
                hint="raise the harness option model_timeout_s",
            ) from error
        except aiohttp.ClientError as error:
            raise ModelUnavailable(f"the model at {self._url} cannot be reached: {error}") from error


def _answer(body: bytes) -> Answer:
    try:
        choice = json.loads(body)["choices"][0]
        message = choice["message"]
    except (ValueError, RecursionError, LookupError, TypeError) as error:
        raise ModelReplyMalformed(f"the answer is not a chat completion: {body[:200]!r}") from error
    if not isinstance(message, dict):
        raise ModelReplyMalformed(f"the answer holds no message: {body[:200]!r}")
    return Answer(message=message, finish=str(choice.get("finish_reason") or "stop"))
