"""One local sandbox's place on the host: its directory, its agent, its way out."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from orchard_core.errors import SandboxConnectionLost, SandboxCreateFailed, SandboxError, SandboxGone
from orchard_core.sandbox.agent import AgentClient
from orchard_core.sandbox.egress.outlet import Outlet, needs_outlet, outlet_environment
from orchard_core.sandbox.local.account import Account
from orchard_core.sandbox.local.cgroups import SandboxCgroup
from orchard_core.sandbox.local.cloning import Cloned, Cloning
from orchard_core.sandbox.local.command import Layer, Plan, environment
from orchard_core.sandbox.local.host import LocalHost
from orchard_core.sandbox.local.launch import Launched, last_words, launch
from orchard_core.sandbox.local.layers import make_layers, make_scratch, plan_layers, writable
from orchard_core.sandbox.local.limits import LimitPlan
from orchard_core.sandbox.local.removal import remove_tree
from orchard_core.sandbox.local.stillness import Stillness
from orchard_core.sandbox.unbroken import unbroken
from orchard_core.types.sandbox import AgentEndpoint, Mount, NetworkMode, SandboxSpec

Fill = Callable[[list[Path]], Awaitable[None]]
"""Puts saved files where the writable layers of a new sandbox shall be; none of them exists yet."""

_T = TypeVar("_T")
_RETRY_S = 0.005
_HOST_NETWORK_FILES = ("/etc/resolv.conf", "/etc/hosts")


class LocalBox:
    """Implements orchard_core.sandbox.place.Place."""

    def __init__(
        self,
        *,
        sandbox_id: str,
        spec: SandboxSpec,
        account: Account,
        limits: LimitPlan,
        host: LocalHost,
        spawner: ThreadPoolExecutor,
        timeout_s: float,
        on_destroyed: Callable[[], None],
        fill: Fill | None = None,
    ) -> None:
        self._id = sandbox_id
        self._spec = spec
        self._account = account
        self._limits = limits
        self._host = host
        self._spawner = spawner
        self._timeout_s = timeout_s
        self._on_destroyed = on_destroyed
        self._fill = fill
        self._path = host.state.box(sandbox_id)
        self._cgroup = SandboxCgroup()
        self._plan: Plan | None = None
        self._launched: Launched | None = None
        self._outlet: Outlet | None = None
        self._watchers: list[asyncio.Task[None]] = []
        # A thread goes on when its caller is cancelled: what it starts must be known to whoever removes it.
        self._changing = threading.Lock()
        # What stands for one copy must not be met by another, nor be replaced by a restart.
        self._saving = asyncio.Lock()
        self._cloning: Cloning | None = None
        self._destroyed = False

    @property
    def id(self) -> str:
        """The sandbox's id."""
        return self._id

    @property
    def disk_bytes(self) -> int | None:
        """Size of the writable layers that is allowed."""
        return self._limits.disk_bytes

    @property
    def path(self) -> Path:
        """The sandbox's directory on the host."""
        return self._path

    @property
    def proxied(self) -> bool:
        """The network policy goes through the proxy."""
        return needs_outlet(self._spec.network)

    async def open(self) -> AgentClient:
        """Make the directories and start the first agent. Raises SandboxCreateFailed."""
        if self.proxied:
            self._outlet = Outlet(self._spec.network, self._path)
        try:
            self._plan = await self._blocking(self._prepare)
            if self._fill is not None:
                await self._fill(writable(self._plan.layers))
            if self._outlet is not None:
                await self._outlet.open()
        except OSError as error:
            raise SandboxCreateFailed(f"sandbox {self._id}: {error}") from error
        return await self._start_agent()

    def watch(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something for as long as the sandbox lives."""
        self._watchers.append(asyncio.create_task(work))

    async def restart(self) -> AgentClient:
        """See Place."""
        async with self._saving:
            if self._launched is not None:
                await self._blocking(self._launched.kill)
            return await self._start_agent()

    async def save(self, target: Path) -> Cloned:
        """Copy the writable layers into a directory while everything inside stands still. Raises
        SandboxGone, DiskFull, SandboxError; what was copied by then is the caller's to remove."""
        async with self._saving:
            if self._plan is None or self._destroyed:
                raise self._gone()
            host = self._host
            self._cloning = Cloning(host.bwrap, host.agent, host.state.path)
            try:
                async with self._standing():
                    return await self._cloning.run(
                        [(layer, target / layer.name) for layer in writable(self._plan.layers)]
                    )
            except SandboxError as error:
                if self._destroyed:
                    raise self._gone() from error
                raise
            finally:
                self._cloning = None

    def _gone(self) -> SandboxGone:
        return SandboxGone(f"sandbox {self._id} ended before its files were copied")

    @contextlib.asynccontextmanager
    async def _standing(self) -> AsyncIterator[None]:
        """Nothing inside runs; it goes on afterwards, whoever is cancelled when."""
        if self._launched is None:
            yield
            return
        stopping = asyncio.ensure_future(self._blocking(self._launched.still))
        try:
            await asyncio.shield(stopping)
            yield
        finally:
            await unbroken(self._go_on(stopping))

    async def _go_on(self, stopping: asyncio.Future[Stillness]) -> None:
        stillness = await stopping
        await self._blocking(stillness.end)

    def ended(self) -> str | None:
        """See Place."""
        if self._launched is None or not self._launched.ended():
            return None
        if self._cgroup.oom_kills():
            return f"sandbox {self._id} ended: it ran out of memory and the kernel killed its agent"
        words = last_words(self._path / "agent.log")
        return f"sandbox {self._id} ended: its agent was killed or failed{': ' + words if words else ''}"

    async def destroy(self) -> None:
        """See Place."""
        self._destroyed = True
        if self._cloning is not None:
            self._cloning.stop()
        for task in self._watchers:
            with contextlib.suppress(RuntimeError):  # its loop is closed
                task.cancel()
        if self._outlet is not None:
            with contextlib.suppress(RuntimeError):  # likewise
                await self._outlet.close()
        with contextlib.suppress(OSError):  # what is left lies under this driver's lease: a reaper finds it
            await self._blocking(self._remove)
        self._on_destroyed()

    def _prepare(self) -> Plan:
        with self._changing:
            self._path.mkdir(mode=0o700)
            layers = self._layers()
            self._cgroup = self._host.cgroups.create(self._id, self._limits.cgroup)
        host_network = self._spec.network.mode is NetworkMode.HOST
        found = [path for path in _HOST_NETWORK_FILES if host_network and Path(path).is_file()]
        return Plan(
            sandbox_id=self._id,
            layers=layers,
            mounts=(*(Mount(source=path, target=path) for path in found), *self._spec.mounts),
            account=self._account,
            env=environment(self._account, {**outlet_environment(self._spec.network), **self._spec.env}),
            workdir=self._spec.workdir,
            agent=self._host.agent,
            host_network=host_network,
        )

    def _layers(self) -> tuple[Layer, ...]:
        host, image = self._host, self._spec.image
        if self._fill is None:
            return make_layers(self._path, image, host.image, self._account, overlays=host.overlays)
        layers = plan_layers(self._path, image, host.image, overlays=host.overlays)
        make_scratch(layers)
        return layers

    async def _start_agent(self) -> AgentClient:
        token = secrets.token_urlsafe(32)
        await self._blocking(lambda: self._launch(token))
        client = AgentClient(
            AgentEndpoint(url=f"unix:{self._path / 'agent.sock'}", token=token, sandbox_id=self._id)
        )
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._first_answer(client)
                if self._outlet is not None:
                    await self._outlet.connect(client)
        except TimeoutError:
            await client.close()
            raise SandboxCreateFailed(
                f"sandbox {self._id}: its agent did not answer within {self._timeout_s:g} s"
            ) from None
        return client

    async def _first_answer(self, client: AgentClient) -> None:
        """The socket listens before the agent runs, so that the first call simply waits for it."""
        while True:
            try:
                await client.health()
                return
            except (SandboxConnectionLost, SandboxGone) as error:
                if self._launched is None or self._launched.ended():
                    words = last_words(self._path / "agent.log") or str(error)
                    raise SandboxCreateFailed(f"sandbox {self._id} did not start: {words}") from error
            await asyncio.sleep(_RETRY_S)

    def _launch(self, token: str) -> None:
        assert self._plan is not None
        host = self._host
        try:
            with self._changing:
                self._launched = launch(
                    host.bwrap, self._plan, self._path, token, self._limits, self._cgroup, host.seccomp
                )
        except OSError as error:  # such as no file descriptors left in this process
            raise SandboxCreateFailed(f"sandbox {self._id} did not start: {error}") from error

    def _remove(self) -> None:
        with self._changing:
            if self._launched is not None:
                self._launched.kill()
            self._cgroup.remove()
            remove_tree(self._path)

    async def _blocking(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._spawner, work)
