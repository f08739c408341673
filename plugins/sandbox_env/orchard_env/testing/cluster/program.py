"""The stand-in as a server of its own: in this loop for tests, as a program for simulations."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self

import orjson
import yaml
from aiohttp import web

from orchard_env.kubernetes.resources import Manifest
from orchard_env.testing.cluster.agents import serve_agents
from orchard_env.testing.cluster.answers import said
from orchard_env.testing.cluster.server import Server
from orchard_env.testing.cluster.settings import Fault, Settings

_BODY_MAX = 64 << 20


class FakeCluster:
    """`async with FakeCluster() as cluster:` serves on a loopback port; `write_kubeconfig` leads to it."""

    def __init__(self, settings: Settings | None = None, template: Manifest | None = None) -> None:
        """`template`: a pod that those that stand from the beginning are like."""
        self.server = Server(settings or Settings(), template)
        app = web.Application(client_max_size=_BODY_MAX)
        app.router.add_post("/-/{order}", self._order)
        app.router.add_route("*", "/{path:.*}", self.server.handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        self._site: web.TCPSite | None = None
        self.port = 0

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await self.listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.drop_watches()
        await self._runner.cleanup()

    async def listen(self) -> None:
        """Answer (again), on the port of before if there was one."""
        self._site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await self._site.start()
        self.port = self._runner.addresses[0][1]

    async def deaf(self) -> None:
        """Refuse connections, and break those there are, until `listen`."""
        self.drop_watches()
        if self._site is not None:
            await self._site.stop()
        server = self._runner.server
        for connection in list(server.connections) if server is not None else []:
            if connection.transport is not None:
                connection.transport.abort()

    def write_kubeconfig(self, path: Path, namespace: str = "default") -> Path:
        """A kubeconfig that leads here."""
        path.write_text(yaml.safe_dump(self.kubeconfig(namespace)))
        return path

    def kubeconfig(self, namespace: str = "default") -> Manifest:
        """Its content, with a user `fake` that has a token."""
        return _kubeconfig(self.port, namespace)

    async def _order(self, request: web.Request) -> web.Response:
        """`touch`, `lapse` (`?count=`), `counts`: for who drives this program."""
        count = int(request.query.get("count", "0"))
        orders: dict[str, Callable[[], object]] = {
            "touch": lambda: self.server.kubelet.touch(count),
            "lapse": lambda: self._lapse(count),
            "counts": lambda: None,
        }
        order = orders.get(request.match_info["order"])
        if order is None:
            return said({"message": f"the orders are {', '.join(orders)}"}, 404)
        order()
        return said(dict(self.server.counts))

    def _lapse(self, count: int) -> None:
        """The watches break, so many pods are replaced by others, and nothing is left to tell of it."""
        self.drop_watches()
        self.server.kubelet.renew(count)
        self.compact()

    def suffer(self, fault: Fault) -> None:
        """Let something go wrong from now on."""
        self.server.faults.append(fault)

    def drop_watches(self) -> None:
        """Break every watch in the middle."""
        for watch in list(self.server.watches):
            watch.end()

    def silence_watches(self) -> None:
        """The watches there are stay open and say nothing more."""
        for watch in self.server.watches:
            watch.silent = True

    def compact(self) -> None:
        """Forget what happened: a watch from before gets 410."""
        self.server.store.compact()


def _kubeconfig(port: int, namespace: str) -> Manifest:
    here = {"cluster": "fake", "user": "fake", "namespace": namespace}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "fake",
        "clusters": [{"name": "fake", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "fake", "user": {"token": "fake"}}],
        "contexts": [{"name": "fake", "context": here}],
    }


async def _serve(kubeconfig: Path, settings: Settings, template: Manifest | None, agents: int) -> None:
    async with FakeCluster(settings, template) as cluster, AsyncExitStack() as stack:
        if agents:
            await stack.enter_async_context(serve_agents(agents))
        cluster.write_kubeconfig(kubeconfig)
        sys.stdout.write(orjson.dumps({"port": cluster.port}).decode() + "\n")
        sys.stdout.flush()
        # It lives as long as whoever holds its input.
        await asyncio.to_thread(sys.stdin.read)


def main() -> None:
    """`--kubeconfig FILE` and every number of Settings; ends when its standard input is closed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True, help="written once it listens")
    parser.add_argument("--template", type=Path, help="a pod as JSON that the standing ones are like")
    parser.add_argument("--agents", type=int, default=0, help="port on which every pod's agent says it lives")
    numbers = [field for field in dataclasses.fields(Settings) if field.name != "labels"]
    for field in numbers:
        kind = int if isinstance(field.default, int) else float
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=kind, default=field.default)
    given = vars(parser.parse_args())
    kubeconfig, agents, file = given.pop("kubeconfig"), given.pop("agents"), given.pop("template")
    template = None if file is None else orjson.loads(file.read_bytes())
    asyncio.run(_serve(kubeconfig, Settings(**given), template, agents))
