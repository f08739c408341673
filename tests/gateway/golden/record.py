"""Records what the real harnesses send, as golden files.

    python -m tests.gateway.golden.record pi opencode codex claude kimi miniswe

Each plays one small task against the oracle through a relay that writes down its requests. Other people's
prose and the machine's own traits do not enter the files: see `scrub`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web

from orchard_core import Gateway, Harness, SandboxSpec, load_harness, load_provider, mounts_of
from orchard_core.gateway.scripted import OracleModel
from orchard_core.types.harness import Limits
from tests.gateway.golden.replay import HERE, TASK, Exchange, context, replay
from tests.gateway.golden.scrub import scrub


class Relay:
    """Passes requests on to a gateway, and keeps them."""

    def __init__(self, target: str) -> None:
        self._target = target
        self.seen: list[Exchange] = []
        """What came, in order."""

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """One request."""
        body = await request.read()
        self.seen.append(
            Exchange(method=request.method, path=request.path_qs, request=json.loads(body) if body else None)
        )
        headers = {name: value for name, value in request.headers.items() if name.lower() != "host"}
        url = self._target + request.path_qs
        async with (
            aiohttp.ClientSession() as client,
            client.request(request.method, url, data=body, headers=headers) as answer,
        ):
            response = web.StreamResponse(
                status=answer.status, headers={"Content-Type": answer.headers.get("Content-Type", "")}
            )
            await response.prepare(request)
            async for piece in answer.content.iter_any():
                await response.write(piece)
            await response.write_eof()
            return response


async def record(harness: Harness) -> list[Exchange]:
    """The exchanges of one run."""
    provider = load_provider("local")
    try:
        spec = SandboxSpec(mounts=tuple(await mounts_of(harness)))
        async with Gateway() as gateway, await provider.create(spec) as sandbox:
            session = await gateway.open_session(OracleModel(), context())
            parts = urlsplit(session.endpoint.base_url)
            relay = Relay(f"{parts.scheme}://{parts.netloc}")
            app = web.Application(client_max_size=64 << 20)
            app.router.add_route("*", "/{path:.*}", relay.serve)
            runner = web.AppRunner(app)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            port = runner.addresses[0][1]
            endpoint = replace(session.endpoint, base_url=f"http://127.0.0.1:{port}{parts.path}")
            result = await harness.run(TASK, sandbox, endpoint, [], Limits())
            assert "forty-two" in (result.answer or ""), result.stop
            await session.close()
            await runner.cleanup()
    finally:
        await provider.close()
    prefix = parts.path.removesuffix("/v1")
    return [
        each.model_copy(update={"path": each.path.removeprefix(prefix), "request": scrub(each.request)})
        for each in relay.seen
    ]


async def main(names: Sequence[str]) -> None:
    """Write a file a harness."""
    for name in names:
        harness = load_harness("miniswe" if name == "miniswe" else f"cli:{name}")
        exchanges = await replay(await record(harness))
        text = json.dumps([each.model_dump() for each in exchanges], indent=1, ensure_ascii=True)
        (HERE / f"{name}.json").write_text(text + "\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
