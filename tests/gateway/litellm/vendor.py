"""A server that speaks Anthropic's protocol, as a vendor behind LiteLLM would."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Json = dict[str, Any]

USAGE = {
    "input_tokens": 10,
    "cache_read_input_tokens": 70,
    "cache_creation_input_tokens": 20,
    "output_tokens": 5,
}
CONTENT: list[Json] = [
    {"type": "text", "text": "See:"},
    {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "ls"}},
]


def answer() -> Json:
    """A whole answer."""
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5"}
    return {**head, "content": CONTENT, "stop_reason": "tool_use", "stop_sequence": None, "usage": USAGE}


def events() -> list[Json]:
    """The same streamed."""
    call = {**CONTENT[1], "input": {}}
    piece = {"type": "input_json_delta", "partial_json": '{"command": "ls"}'}
    return [
        {"type": "message_start", "message": {**answer(), "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "See:"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": call},
        {"type": "content_block_delta", "index": 1, "delta": piece},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]


@dataclass
class Vendor:
    """Answers with that, or with what `failure` holds: status, body, headers."""

    failure: tuple[int, Json, Mapping[str, str]] | None = None
    streamed: list[Json] = field(default_factory=events)
    asked: list[tuple[Mapping[str, str], Json]] = field(default_factory=list)
    url: str = ""
    _runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen."""
        app = web.Application()
        app.router.add_post("/v1/messages", self._answer)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        """Close."""
        assert self._runner is not None
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.asked.append(({name.lower(): value for name, value in request.headers.items()}, body))
        if self.failure is not None:
            status, words, headers = self.failure
            return web.json_response(words, status=status, headers=headers)
        if not body.get("stream"):
            return web.json_response(answer())
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        for event in self.streamed:
            await stream.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        await stream.write_eof()
        return stream


def thoughtful_events() -> list[Json]:
    """The same after signed reasoning, which comes in pieces."""

    def piece(kind: str, **said: str) -> Json:
        return {"type": "content_block_delta", "index": 0, "delta": {"type": kind, **said}}

    first, *others = events()
    empty = {"type": "thinking", "thinking": "", "signature": ""}
    return [
        first,
        {"type": "content_block_start", "index": 0, "content_block": empty},
        piece("thinking_delta", thinking="I should "),
        piece("thinking_delta", thinking="look."),
        piece("signature_delta", signature="c2lnbmVk"),
        {"type": "content_block_stop", "index": 0},
        *({**event, "index": event["index"] + 1} if "index" in event else event for event in others),
    ]
