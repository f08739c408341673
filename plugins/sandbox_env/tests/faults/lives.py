"""One sandbox's life as the soak plays it: made, used in every way, disturbed, counted, and deleted."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import random
import signal
from collections import Counter
from pathlib import Path
from typing import Any, Self

import aiohttp

BLOCK = 1 << 20
_TRIES = 10


class Traffic:
    """Every tenant's connections to one service."""

    def __init__(self, url: str, keys: dict[str, str], counts: Counter[str]) -> None:
        self.url = url
        self.keys = keys
        self.counts = counts
        self._sessions: dict[str, aiohttp.ClientSession] = {}

    async def __aenter__(self) -> Self:
        for tenant, key in self.keys.items():
            limit = aiohttp.ClientTimeout(total=120)
            self._sessions[tenant] = aiohttp.ClientSession(
                self.url, headers={"X-API-Key": key}, timeout=limit
            )
        return self

    async def __aexit__(self, *_: object) -> None:
        for session in self._sessions.values():
            await session.close()

    def session(self, tenant: str) -> aiohttp.ClientSession:
        """A tenant's."""
        return self._sessions[tenant]

    async def ask(
        self, tenant: str, method: str, path: str, *, patient: bool = True, **options: Any
    ) -> tuple[int, Any]:
        """A call, again when the service has no room; its status and its JSON. One that is not `patient`
        gives up after a while."""
        tries = itertools.count() if patient else range(_TRIES)
        for _ in tries:
            async with self._sessions[tenant].request(method, path, **options) as answer:
                told = await answer.json()
                if answer.status not in (429, 503):
                    self.counts[f"{method} {answer.status}"] += 1
                    return answer.status, told
                assert int(answer.headers["Retry-After"]) >= 1
                self.counts[f"asked to wait ({answer.status})"] += 1
            await asyncio.sleep(0.3)
        return answer.status, told

    async def left(self) -> list[str]:
        """What stands by the service's list, and what the tenants' books count."""
        found: list[str] = []
        for tenant in self.keys:
            _, listed = await self.ask(tenant, "GET", "/v2/sandboxes")
            found += [one["id"] for one in listed["sandboxes"]]
            _, usage = await self.ask(tenant, "GET", "/v2/usage")
            if usage.get("sandboxes"):
                found.append(f"{tenant} counts {usage['sandboxes']}")
        return found


class Life:
    """One sandbox of one tenant."""

    def __init__(self, traffic: Traffic, tenant: str, name: str, seed: int) -> None:
        self._traffic = traffic
        self._tenant = tenant
        self._name = name
        self._chance = random.Random(seed)
        self._lines: list[str] = []
        self._others = [one for one in traffic.keys if one != tenant]

    async def live(self) -> None:
        """From its creation to its end. Raises AssertionError for whatever is not as it should be."""
        asked = {"image": "host", "sandbox_id": self._name}
        status, told = await self._ask("POST", "/sandboxes", json=asked)
        assert status == 200, told
        try:
            status, told = await self._ask("GET", f"/sandboxes/{self._name}/wait")
            assert status == 200, told
            uses = [self._commands, self._stream, self._file, self._terminal, self._stranger]
            self._chance.shuffle(uses)
            for use in uses:
                await use()
            await self._check_lines(self._name)
            await self._chance.choice((self._fork, self._kill_agent, self._leave_running))()
        finally:
            status, told = await self._ask("DELETE", f"/sandboxes/{self._name}")
            assert status == 200, told

    async def _ask(self, method: str, path: str, **options: Any) -> tuple[int, Any]:
        return await self._traffic.ask(self._tenant, method, path, **options)

    async def _run(self, sandbox: str, command: str, run_id: str) -> dict[str, Any]:
        order = {"command": command, "wait": True, "exec_id": run_id}
        status, told = await self._ask("POST", f"/sandboxes/{sandbox}/exec", json=order)
        assert status == 200, told
        job: dict[str, Any] = told
        return job

    async def _commands(self) -> None:
        """Each writes one line; some callers leave in the middle and send theirs again."""
        for _ in range(5):
            line = f"line-{len(self._lines)}"
            self._lines.append(line)
            command = f"sleep 0.05; echo {line} >> log; echo {line}"
            if self._chance.random() < 0.4:
                await self._cut_short(command, line)
            for _ in range(self._chance.choice((1, 1, 2))):
                job = await self._run(self._name, command, line)
                assert job["stdout"] == f"{line}\n", job

    async def _cut_short(self, command: str, run_id: str) -> None:
        order = {"command": command, "wait": True, "exec_id": run_id}
        path = f"/sandboxes/{self._name}/exec"
        asking = asyncio.create_task(self._ask("POST", path, json=order))
        await asyncio.sleep(self._chance.random() * 0.05)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        self._traffic.counts["callers that left"] += 1

    async def _stream(self) -> None:
        """Events of a command that says much, read to the end or left in the middle."""
        order = {"command": "seq 1 20000; echo END", "id": "stream"}
        status, told = await self._ask("POST", f"/v2/sandboxes/{self._name}/execs", json=order)
        assert status == 201, told
        session = self._traffic.session(self._tenant)
        whole = self._chance.random() < 0.5
        said = b""
        async with session.get(f"/v2/sandboxes/{self._name}/execs/stream/events") as answer:
            assert answer.status == 200, await answer.text()
            async for piece in answer.content.iter_any():
                said += piece
                if not whole:
                    break
        assert not whole or b"END" in said
        self._traffic.counts["streams read" if whole else "streams left"] += 1

    async def _file(self) -> None:
        data = self._chance.randbytes(BLOCK)
        session, path = self._traffic.session(self._tenant), f"/v2/sandboxes/{self._name}/files"
        where = {"path": "/workspace/block"}
        async with session.put(path, params=where, data=data) as answer:
            assert answer.status == 200, await answer.text()
        async with session.get(path, params=where) as answer:
            assert await answer.read() == data
        self._traffic.counts["files"] += 1

    async def _terminal(self) -> None:
        session = self._traffic.session(self._tenant)
        async with asyncio.timeout(60), session.ws_connect(f"/sandboxes/{self._name}/exec/pty") as socket:
            await socket.send_json({"type": "init", "cmd": ["cat"]})
            typed = base64.b64encode(b"ping\n").decode()
            await socket.send_json({"type": "stdin", "data": typed})
            shown = b""
            while b"ping\r\nping" not in shown:
                told = json.loads((await socket.receive()).data)
                assert told["type"] in ("ready", "stdout"), told
                shown += base64.b64decode(told.get("data", ""))
        self._traffic.counts["terminals"] += 1

    async def _stranger(self) -> None:
        """Another tenant finds nothing here."""
        other = self._chance.choice(self._others)
        for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/files?path=log")):
            status, _ = await self._traffic.ask(other, method, f"/sandboxes/{self._name}{path}")
            assert status == 404

    async def _check_lines(self, sandbox: str) -> None:
        """Every command ran, and ran once."""
        told = (await self._run(sandbox, "cat log", f"count-{sandbox}"))["stdout"].split()
        assert told == self._lines, f"{sandbox}: {told} is not {self._lines}"

    async def _fork(self) -> None:
        path = f"/v2/sandboxes/{self._name}/fork"
        # Four that fill their tenant's quota and all wait for room for a fifth would wait for ever.
        status, told = await self._ask("POST", path, json={"count": 1}, patient=False)
        if status in (429, 503):
            self._traffic.counts["forks without room"] += 1
            return
        assert status in (200, 201), told
        for fork in told["sandboxes"]:
            await self._check_lines(fork["id"])
            status, gone = await self._ask("DELETE", f"/sandboxes/{fork['id']}")
            assert status == 200, gone
            self._traffic.counts["forks"] += 1

    async def _kill_agent(self) -> None:
        """kill -9 of its agent from outside: it is told of, and its name is still there to be deleted."""
        for number in agents_of(self._name):
            os.kill(number, signal.SIGKILL)
        order = {"command": "true", "wait": True}
        status, told = await self._ask("POST", f"/sandboxes/{self._name}/exec", json=order)
        assert status == 410, (status, told)
        self._traffic.counts["agents killed"] += 1

    async def _leave_running(self) -> None:
        """It is deleted with commands running and waiting."""
        for _ in range(3):
            order = {"command": "sleep 1000"}
            status, told = await self._ask("POST", f"/sandboxes/{self._name}/exec", json=order)
            assert status == 200, told
        self._traffic.counts["left running"] += 3


def agents_of(sandbox: str) -> list[int]:
    """Processes of the agent of a sandbox, by what they were started with."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if sandbox.encode() in words and b"--sandbox-id" in words:
            found.append(int(path.parent.name))
    return found
