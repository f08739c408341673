"""A real server of the responses API."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Json = dict[str, Any]

ITEMS: list[Json] = [
    {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "secret", "vendor": 1},
    {
        "id": "msg_1",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Hello.", "annotations": []}],
    },
    {"id": "fc_1", "type": "function_call", "call_id": "c", "name": "run", "arguments": '{"x":  1}'},
]
USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 5,
    "total_tokens": 15,
}


def response(**fields: Any) -> Json:
    """A whole answer."""
    return {"id": "r", "object": "response", "status": "completed", "output": ITEMS, "usage": USAGE, **fields}


def events(last: Json | None = None) -> list[Json]:
    """A streamed one."""
    message = {**ITEMS[1], "status": "in_progress", "content": []}
    where = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
    part = {"type": "output_text", "text": "", "annotations": []}
    return [
        {"type": "response.created", "response": response(status="in_progress", output=[], usage=None)},
        {"type": "response.output_item.added", "output_index": 0, "item": ITEMS[0]},
        {"type": "response.output_item.done", "output_index": 0, "item": ITEMS[0]},
        {"type": "response.output_item.added", "output_index": 1, "item": message},
        {"type": "response.content_part.added", **where, "part": part},
        {"type": "response.output_text.delta", **where, "delta": "Hel"},
        {"type": "response.output_text.delta", **where, "delta": "lo."},
        {"type": "response.output_item.done", "output_index": 1, "item": ITEMS[1]},
        {"type": "response.output_item.added", "output_index": 2, "item": {**ITEMS[2], "arguments": ""}},
        {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"x":  1}'},
        {"type": "response.output_item.done", "output_index": 2, "item": ITEMS[2]},
        last or {"type": "response.completed", "response": response()},
    ]


@dataclass
class Server:
    """Answers with what it holds, and keeps what it was sent."""

    whole: Json = field(default_factory=response)
    streamed: list[Json] = field(default_factory=events)
    bodies: list[bytes] = field(default_factory=list)
    url: str = ""
    _runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen."""
        app = web.Application()
        app.router.add_post("/v1/responses", self._answer)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    async def stop(self) -> None:
        """Close."""
        assert self._runner is not None
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.read())
        if json.loads(self.bodies[-1]).get("stream") is not True:
            return web.json_response(self.whole)
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        for event in self.streamed:
            await stream.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        await stream.write_eof()
        return stream
