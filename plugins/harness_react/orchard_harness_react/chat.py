"""The model, reached through the one endpoint a harness is given."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

import aiohttp
from pydantic import JsonValue

from orchard_core import ModelEndpoint, ModelReplyMalformed, ModelTimeout, ModelUnavailable, model_error
from orchard_harness_react.config import ReactConfig
from orchard_harness_react.protocol import Answer, Json, Message
from orchard_harness_react.stream import assembled

_MESSAGE = re.compile(r'"message"\s*:\s*')
_decoder = json.JSONDecoder()


class Chat:
    """Asks for chat completions. It never retries: the gateway behind the endpoint does that."""

    def __init__(self, model: ModelEndpoint, config: ReactConfig, fields: Mapping[str, JsonValue]) -> None:
        self._url = f"{model.base_url.rstrip('/')}/chat/completions"
        said = {"model": model.model, **fields, **config.sampling()}
        if config.stream:
            said |= {"stream": True, "stream_options": {"include_usage": True}}
        self._head = json.dumps(said, separators=(",", ":"))[:-1]
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
        body = f'{self._head},"messages":[{",".join(message.raw for message in messages)}]}}'
        data = body.encode("utf-8", "surrogatepass")
        try:
            async with self._http.post(self._url, data=data, headers=self._headers) as response:
                if response.status != 200:
                    raise model_error(response.status, await response.read())
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
        text = body.decode("utf-8", "surrogatepass")
        choice = json.loads(text)["choices"][0]
        fields = choice["message"]
    except (ValueError, RecursionError, LookupError, TypeError) as error:
        raise ModelReplyMalformed(f"the answer is not a chat completion: {body[:200]!r}") from error
    if not isinstance(fields, dict):
        raise ModelReplyMalformed(f"the answer holds no message: {body[:200]!r}")
    message = Message(_as_written(text, fields))
    return Answer(message=message, fields=fields, finish=str(choice.get("finish_reason") or "stop"))


def _as_written(text: str, fields: Json) -> str:
    """The stretch of the body that spells the message; to write it anew would lose blanks and escapes."""
    for found in _MESSAGE.finditer(text):
        value, end = _decoder.raw_decode(text, found.end())
        if value == fields:
            return text[found.end() : end]
    return json.dumps(fields)
