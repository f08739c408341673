"""Two replicas of the service over one cluster and one Redis, with gates at which either can be stopped."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
from orchard_env.service.seams import Scope
from orchard_env.service.state.redis.state import RedisState
from orchard_env.service.tenancy.books import SharedBook
from orchard_env.service.tenancy.issuing import Issued, create_key

from ..service.redis_server import PASSWORD, RedisServer
from .gate import Gate, Stop, Streams
from .orchestrators import GENEROUS_S, Orchestrator, until
from .paper import Paper

TENANT = "alice"


class Replicas:
    """Whoever asks is one tenant, through whichever replica."""

    def __init__(self, paper: Paper, redis: RedisServer, env: dict[str, str] | None = None) -> None:
        self.paper, self.redis = paper, redis
        self._env = env or {}
        self._gate = Gate(self._dial)
        self._port = paper.do(self._gate.open())
        self._key = asyncio.run(self._issue())
        self.running: list[Orchestrator] = []
        self.clients: list[httpx.Client] = []

    def start(self, name: str) -> httpx.Client:
        """One more replica; whoever asks it."""
        # A slow machine is no dead Redis: only what is broken counts as away.
        redis = {"url": f"redis://127.0.0.1:{self._port}/0", "password": PASSWORD, "timeout_s": 30.0}
        team = {"replica": name, "leader": "redis", "leader_s": 2.0, "replica_s": 4.0, "redis": redis}
        provider = {
            "kubeconfig": str(self.paper.kubeconfig),
            "agent_port": self.paper.agent_port,
            "lease_s": 3.0,
            "driver": "team",
        }
        config = self.paper.folder / f"{name}.yaml"
        config.write_text(json.dumps({"provider": provider, "team": team, "service": {"drain_s": 5.0}}))
        flags = ("--provider", "kubernetes", "--config", str(config))
        made = Orchestrator(self.paper.folder / "log", *flags, env=self._env)
        self.running.append(made)
        made.come_up()
        client = httpx.Client(base_url=made.url, timeout=GENEROUS_S, headers={"X-API-Key": self._key.text})
        self.clients.append(client)
        return client

    def stop_at_redis(self, text: bytes, *, answer: bool) -> Stop:
        """Stop the next command of Redis that contains it, or its answer."""

        async def arm() -> Stop:
            stop = Stop(text=text, answer=answer)
            self._gate.stop_at(stop)
            return stop

        return self.paper.do(arm())

    def lose_redis_at(self, stop: Stop, asked: Future[Any]) -> None:
        """kill -9 of Redis when that is reached, which then goes on. The answer may come before that."""
        until(stop.reached.is_set, f"the step is reached; {asked}")
        self.redis.kill()
        self.paper.do(self._break())
        self.paper.go_on(stop, deliver=True)

    def degraded(self) -> list[bool]:
        """Of each replica, whether it says that Redis is away."""
        told = [client.get("/health").raise_for_status().json() for client in self.clients]
        assert {one["status"] for one in told} == {"ok"}
        return ["Redis is away" in str(one.get("degraded")) for one in told]

    def counted(self) -> list[int]:
        """Sandboxes that the tenant has by each replica's book."""
        return [client.get("/v2/usage").raise_for_status().json()["sandboxes"] for client in self.clients]

    def go_on(self) -> None:
        """Redis is there, nothing stops any more, and every replica knows it."""
        self.paper.do(self._forget_stops())
        if not self.redis.running:
            self.redis.start()
        until(lambda: not any(self.degraded()), "every replica finds Redis")

    def close(self) -> None:
        """End them."""
        for client in self.clients:
            client.close()
        for one in self.running:
            one.kill()
        self.paper.do(self._gate.close())

    async def _forget_stops(self) -> None:
        for gate in (self._gate, self.paper.server_gate, *(one.gate for one in self.paper.agents.values())):
            gate.forget_stops()

    async def _break(self) -> None:
        self._gate.break_all()

    async def _issue(self) -> Issued:
        state = RedisState(self.redis.settings())
        try:
            scopes = (Scope.READ, Scope.USE, Scope.CREATE)
            return await create_key(SharedBook(state), TENANT, scopes=scopes)
        finally:
            await state.close()

    async def _dial(self) -> Streams:
        return await asyncio.open_unix_connection(str(self.redis.socket))


@contextmanager
def asked_in_time(
    client: httpx.Client, method: str, path: str, body: Any
) -> Iterator[Future[httpx.Response]]:
    """A request that has been sent; its answer is awaited at the end."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(client.request, method, path, json=body)
