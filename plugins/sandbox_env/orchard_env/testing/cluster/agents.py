"""Agents that say that they live, and do nothing else: the address of every pod here is a loopback one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from orchard_env.testing.cluster.answers import said


@asynccontextmanager
async def serve_agents(port: int) -> AsyncIterator[None]:
    """Answer on all loopback addresses."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", _alive)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "0.0.0.0", port, backlog=4096).start()  # noqa: S104
    try:
        yield
    finally:
        await runner.cleanup()


async def _alive(request: web.Request) -> web.Response:
    # A connection for each of very many agents would be more than a process may have.
    sandbox = request.headers.get("X-Orchard-Sandbox", "")
    health = {"sandbox": sandbox, "version": "0", "uptime": 0.0, "pid": 1, "running": 0}
    return said(health, headers={"Connection": "close"})
