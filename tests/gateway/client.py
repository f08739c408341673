"""A plain client of a gateway session."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp

from orchard_core import ModelEndpoint


@dataclass
class Answer:
    """What came back."""

    status: int
    raw: bytes
    headers: Mapping[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def message(self) -> dict[str, Any]:
        message: dict[str, Any] = self.json["choices"][0]["message"]
        return message

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = self.json["error"]
        return error

    @property
    def events(self) -> list[Any]:
        """The data of each event; `[DONE]` stays text."""
        found = [line[6:] for line in self.raw.decode().split("\n") if line.startswith("data: ")]
        return [data if data == "[DONE]" else json.loads(data) for data in found]


@dataclass
class Client:
    """Sends requests with one session's key."""

    http: aiohttp.ClientSession
    endpoint: ModelEndpoint

    async def post(self, body: object, *, path: str = "/chat/completions", key: str | None = None) -> Answer:
        """Send bytes as they are, anything else as JSON."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.endpoint.api_key if key is None else key}"}
        async with self.http.post(self.endpoint.base_url + path, data=data, headers=headers) as response:
            return Answer(response.status, await response.read(), response.headers)

    async def chat(self, messages: Sequence[Mapping[str, Any]], **fields: Any) -> Answer:
        """One chat completion."""
        return await self.post({"model": self.endpoint.model, "messages": list(messages), **fields})

    async def say(self, text: str, **fields: Any) -> Answer:
        """One chat completion of one message."""
        return await self.chat([user(text)], **fields)


def user(text: str) -> dict[str, Any]:
    """A user's message."""
    return {"role": "user", "content": text}


def system(text: str) -> dict[str, Any]:
    """A system message."""
    return {"role": "system", "content": text}


def tool(call: str, text: str) -> dict[str, Any]:
    """A tool's result."""
    return {"role": "tool", "tool_call_id": call, "content": text}
