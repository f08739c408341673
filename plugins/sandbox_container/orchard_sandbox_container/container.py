"""One sandbox's container: the place in which its agent runs."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from orchard_core import (
    AgentClient,
    AgentEndpoint,
    OrchardError,
    Outlet,
    SandboxConnectionLost,
    SandboxCreateFailed,
    SandboxError,
    SandboxGone,
    SandboxOutOfMemory,
    SandboxSpec,
    SandboxUnavailable,
    needs_outlet,
    unbroken,
)
from orchard_sandbox_container.box import Box
from orchard_sandbox_container.disk import limit_files, watch_disk
from orchard_sandbox_container.engine import Engine, EngineRefused
from orchard_sandbox_container.oom import killed_for_memory
from orchard_sandbox_container.owner import Owner, start_time

_POLL_S = 0.005
_LOOK_S = 0.5
_VERDICT_S = 4.0
_LAG_S = 0.05
_KILLED = 137

Gate = Callable[[], contextlib.AbstractAsyncContextManager[object]]
"""Entered around what makes an engine work hard."""


class Container:
    """Honours `StandingPlace` and `TellingPlace`. Made by `ContainerPlaces`."""

    def __init__(
        self,
        *,
        sandbox_id: str,
        container: str,
        spec: SandboxSpec,
        box: Box,
        engine: Engine,
        gate: Gate,
        timeout_s: float,
        image: str,
        on_removed: Callable[[], Awaitable[None]],
    ) -> None:
        self.id = sandbox_id
        self.container = container
        """The engine's id of it."""
        self.spec = spec
        self.image = image
        """Id of the image it was made from."""
        self.box = box
        self.busy = asyncio.Lock()
        """Held by whoever stops or copies it."""
        self._engine = engine
        self._gate = gate
        self._timeout_s = timeout_s
        self._on_removed = on_removed
        self._outlet: Outlet | None = None
        self._disk: asyncio.Task[None] | None = None
        self._begun = False
        self._pid = 0
        self._end: SandboxGone | None = None
        self._removed = False
        self._doomed = False

    @property
    def workdir(self) -> str:
        """See NewPlace."""
        return self.spec.workdir

    async def restart(self) -> AgentClient:
        """See Place: the first start, or a new one of the same container."""
        async with self.busy:
            try:
                return await self._restart()
            except (OSError, EngineRefused) as error:
                raise SandboxCreateFailed(
                    f"sandbox {self.id} did not start: {await self._words(error)}"
                ) from error

    async def _restart(self) -> AgentClient:
        token = secrets.token_urlsafe(32)
        await asyncio.to_thread(self.box.arm, token)
        async with self._gate():
            if self._begun:
                await self._engine.post(f"/containers/{self.container}/restart", {"t": "0"})
            else:
                await self._engine.post(f"/containers/{self.container}/start")
        self._begun = True
        client = self._client(token)
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._sealed()
                await client.health()
                await self._note_pid()
                await self._connect_outlet(client, at_once=True)
        except TimeoutError:
            await client.close()
            raise SandboxCreateFailed(
                f"sandbox {self.id}: its agent did not answer within {self._timeout_s:g} s",
                hint="is the engine on this very machine, and does it see the provider's state_dir?",
            ) from None
        except BaseException:
            await client.close()
            raise
        self._watch_disk()
        return client

    async def _sealed(self) -> None:
        """Wait for the agent's socket, and take it out of sight before any command runs."""
        look = time.monotonic() + _LOOK_S
        while not self.box.seal():
            if time.monotonic() > look:
                if not (await self._state()).get("Running"):
                    raise EngineRefused("its agent ended at once", status=500)
                look = time.monotonic() + _LOOK_S
            await asyncio.sleep(_POLL_S)

    async def attach(self) -> AgentClient:
        """See StandingPlace."""
        try:
            token = await asyncio.to_thread(self.box.token)
            await asyncio.to_thread(self.box.own, Owner.me())
        except OSError as error:
            raise SandboxConnectionLost(
                f"sandbox {self.id} stands, but its token cannot be read: {error}",
                hint="adopt it as the user, on the machine and with the state_dir of the driver that made it",
            ) from error
        self._begun = True
        client = self._client(token)
        try:
            await client.health()
            await self._note_pid()
            await self._connect_outlet(client, at_once=False)
        except BaseException:
            await client.close()
            raise
        self._watch_disk()
        return client

    def _client(self, token: str) -> AgentClient:
        return AgentClient(AgentEndpoint(url=f"unix:{self.box.socket}", token=token, sandbox_id=self.id))

    async def _connect_outlet(self, client: AgentClient, *, at_once: bool) -> None:
        if not needs_outlet(self.spec.network):
            return
        if self._outlet is None:
            self._outlet = Outlet(self.spec.network)
            await self._outlet.open()
        await self._outlet.connect(client, at_once=at_once)

    def _watch_disk(self) -> None:
        if self.spec.disk_mb is None:
            return
        if self._pid:
            limit_files(self._pid, self.spec.disk_mb << 20)
        if self._disk is None:
            self._disk = asyncio.create_task(watch_disk(self._engine, self, self.spec.disk_mb << 20))

    async def overflow(self, used: int, limit: int) -> None:
        """End it, because its files outgrew their limit."""
        self._end = SandboxGone(
            f"sandbox {self.id} was ended: its files take {used >> 20} MiB, more than {limit >> 20} MiB",
            by="agent",
            hint="give a larger disk_mb",
        )
        with contextlib.suppress(OrchardError):
            await self._engine.post(f"/containers/{self.container}/kill")

    def ended(self) -> str | None:
        """See Place."""
        return None if self._end is None else self._end.message

    async def verdict(self) -> SandboxGone | None:
        """See TellingPlace."""
        if self._end is not None or self.busy.locked():
            return self._end
        try:
            async with asyncio.timeout(_VERDICT_S):
                state = await self._settled_state()
        except EngineRefused as error:
            if error.status != 404:
                return None
            self._end = SandboxGone(f"sandbox {self.id}: somebody removed its container", by="infrastructure")
        except (SandboxUnavailable, TimeoutError) as error:
            if self._is_seen_dead():
                return SandboxGone(f"sandbox {self.id} ended with its engine: {error}", by="infrastructure")
            return None
        else:
            self._end = None if state.get("Running") else await self._cause(state)
        return self._end

    async def _cause(self, state: dict[str, Any]) -> SandboxGone:
        code = state.get("ExitCode")
        logged = code == _KILLED and self._pid > 0 and await asyncio.to_thread(killed_for_memory, self._pid)
        if state.get("OOMKilled") or logged:
            return SandboxOutOfMemory(
                f"sandbox {self.id} ended: it ran out of memory and the kernel killed its agent",
                by="agent",
                hint="give a larger memory_mb",
            )
        return SandboxGone(f"sandbox {self.id} ended: its agent was killed or failed (exit {code})")

    async def _state(self) -> dict[str, Any]:
        found = await self._engine.get(f"/containers/{self.container}/json")
        state: dict[str, Any] = found.get("State") or {}
        return state

    async def _settled_state(self) -> dict[str, Any]:
        """An engine notices the death of a container a moment after this machine can."""
        while True:
            state = await self._state()
            if not state.get("Running") or await asyncio.to_thread(self.box.listens):
                return state
            await asyncio.sleep(_LAG_S)

    def _is_seen_dead(self) -> bool:
        """The agent's process is gone, as seen from here; False when it never was seen."""
        return self._pid > 0 and start_time(self._pid) is None

    async def _note_pid(self) -> None:
        pid = int((await self._state()).get("Pid") or 0)
        self._pid = pid if pid > 0 and start_time(pid) is not None else 0

    async def _words(self, error: Exception) -> str:
        said = await self._engine.logs(self.container)
        told = error.message if isinstance(error, EngineRefused) else str(error)
        return f"{told}: {said}" if said else told

    async def release(self) -> None:
        """Let go of it for another driver to adopt, unless it was to be destroyed. Never raises."""
        await self._end_watchers()
        if self._doomed:
            return
        with contextlib.suppress(OSError):
            await asyncio.to_thread(self.box.own, Owner.me().nobody())

    async def destroy(self) -> None:
        """See Place."""
        if self._removed:
            return
        self._doomed = True
        await self._end_watchers()
        # What cannot be removed now keeps its box, by which a reaper knows it.
        with contextlib.suppress(SandboxError):
            async with self._gate():
                await self._engine.delete(f"/containers/{self.container}", {"force": "true", "v": "true"})
            self._removed = True
            await asyncio.to_thread(self.box.remove)
            await self._on_removed()

    async def _end_watchers(self) -> None:
        with contextlib.suppress(RuntimeError):  # their loop is closed
            if self._disk is not None:
                self._disk.cancel()
            if self._outlet is not None:
                await self._outlet.close()

    @contextlib.asynccontextmanager
    async def stopped(self) -> AsyncIterator[None]:
        """Hold it for a copy. Raises SandboxGone when it ends meanwhile, or has."""
        async with self.busy:
            if self._removed:
                raise SandboxGone(f"sandbox {self.id} ended before its files were copied")
            try:
                yield
            except EngineRefused as error:
                gone = await unbroken(self.verdict())
                raise (gone or error) from error
