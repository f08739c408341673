"""The local provider: sandboxes on this machine, by bubblewrap."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from orchard_core.sandbox.agent_sandbox import AgentSandbox
from orchard_core.sandbox.contract import Sandbox
from orchard_core.sandbox.forking import check_count, make_all
from orchard_core.sandbox.furnish import check_spec, furnish, name_for
from orchard_core.sandbox.lifetime import watch_lifetime
from orchard_core.sandbox.local.account import resolve_account
from orchard_core.sandbox.local.box import LocalBox
from orchard_core.sandbox.local.command import check_mounts, environment
from orchard_core.sandbox.local.config import LocalConfig
from orchard_core.sandbox.local.disk import watch_disk
from orchard_core.sandbox.local.host import LocalHost, open_host
from orchard_core.sandbox.local.layers import check_files, check_image
from orchard_core.sandbox.local.limits import enforcers, plan_limits
from orchard_core.sandbox.local.reaper import reap
from orchard_core.sandbox.local.snapshots import Saved, SnapshotShelf
from orchard_core.sandbox.unbroken import unbroken
from orchard_core.types.sandbox import Capabilities, NetworkMode, SandboxSpec, Snapshot

_SPAWNERS = 8
_STARTS = 2 * _SPAWNERS
"""Of a thousand asked for at once, the first stands before the last is begun, and all of them sooner: what is
begun is still at hand when it goes on."""


class LocalProvider:
    """Implements SandboxProvider. The first use tries the host out and cleans up after dead drivers.

    In the image `host`, /usr (with /usr/local, and /bin, /lib and the like) can be written to only when the
    driver is root; everything else can be by any user. A rootfs image can be changed everywhere.

    Snapshots are this object's own: they end with `close`, and with the process.
    """

    def __init__(self, config: LocalConfig | None = None) -> None:
        self._config = config or LocalConfig()
        self._spawner: ThreadPoolExecutor | None = None
        self._host: LocalHost | None = None
        self._shelf: SnapshotShelf | None = None
        self._opening = asyncio.Lock()
        self._starting = asyncio.Semaphore(_STARTS)
        self._sandboxes: dict[str, AgentSandbox] = {}
        self._names: set[str] = set()

    @property
    def name(self) -> str:
        """See SandboxProvider."""
        return "local"

    async def capabilities(self) -> Capabilities:
        """See SandboxProvider."""
        return _capabilities(await self._open())

    async def create(self, spec: SandboxSpec, *, restore: Snapshot | None = None) -> AgentSandbox:
        """See SandboxProvider."""
        await self._open()
        return await self._create(spec, None if restore is None else self._restorable(spec, restore))

    async def discard(self, snapshot: Snapshot) -> None:
        """See SandboxProvider."""
        if self._shelf is not None and snapshot.provider == self.name:
            await self._shelf.discard(snapshot.id)

    async def _create(
        self, spec: SandboxSpec, saved: Saved | None = None, *, take: bool = False
    ) -> AgentSandbox:
        """`take`: the sandbox gets the saved files themselves, instead of a copy."""
        host = await self._open()
        box = self._box(host, spec, saved, take=take)
        try:
            async with self._starting:
                client = await box.open()
            sandbox = AgentSandbox(
                sandbox_id=box.id, spec=spec, capabilities=_capabilities(host), place=box, client=client,
                copies=_Copies(self, box, spec),
            )  # fmt: skip
        except BaseException:
            await unbroken(box.destroy())
            raise
        try:
            await furnish(sandbox, restored=saved is not None)
        except BaseException:
            await sandbox.close()
            raise
        self._sandboxes[sandbox.id] = sandbox
        box.watch(watch_lifetime(sandbox))
        if box.disk_bytes is not None:
            box.watch(watch_disk(sandbox, box.path, box.disk_bytes))
        return sandbox

    async def save(self, box: LocalBox, spec: SandboxSpec) -> Saved:
        """A snapshot of a sandbox of this provider. Raises as `Sandbox.snapshot`."""
        await self._open()
        assert self._shelf is not None
        return await self._shelf.save(box.save, spec.image, resolve_account(spec.user, spec.image))

    async def fork(self, box: LocalBox, spec: SandboxSpec, count: int) -> list[AgentSandbox]:
        """Copies of a sandbox of this provider: what is saved becomes the last one's own files, so that
        `count` forks cost `count` copies. Raises as `Sandbox.fork`."""
        check_count(count)
        saved = await self.save(box, spec)
        spec = spec.model_copy(update={"name": None})
        assert self._shelf is not None
        try:
            made = await make_all(lambda: self._create(spec, saved), count - 1)
            try:
                made.append(await self._create(spec, saved, take=True))
            except BaseException:
                await unbroken(asyncio.gather(*(sandbox.close() for sandbox in made)))
                raise
        finally:
            await unbroken(self._shelf.discard(saved.snapshot.id))
        return made

    def _restorable(self, spec: SandboxSpec, restore: Snapshot) -> Saved:
        assert self._shelf is not None
        return self._shelf.find(restore, spec, resolve_account(spec.user, spec.image))

    def _box(self, host: LocalHost, spec: SandboxSpec, saved: Saved | None, *, take: bool) -> LocalBox:
        """Check everything that can be checked before anything starts. Raises SandboxUnsupported."""
        check_spec(spec)
        check_image(spec.image, overlays=host.overlays)
        check_files(spec.files, spec.image, host.image, overlays=host.overlays)
        check_mounts(spec.mounts)
        account = resolve_account(spec.user, spec.image)
        environment(account, spec.env)
        limits = plan_limits(spec, self._config, enforcers(host.cgroups.limits))
        assert self._spawner is not None
        assert self._shelf is not None
        sandbox_id = name_for(spec, self.name, self._names)
        self._names.add(sandbox_id)
        return LocalBox(
            sandbox_id=sandbox_id,
            spec=spec,
            account=account,
            limits=limits,
            host=host,
            spawner=self._spawner,
            timeout_s=self._config.create_timeout_s,
            on_destroyed=lambda: self._forget(sandbox_id),
            fill=None if saved is None else self._shelf.fill(saved, limits.disk_bytes, take=take),
        )

    def _forget(self, sandbox_id: str) -> None:
        self._sandboxes.pop(sandbox_id, None)
        self._names.discard(sandbox_id)

    async def close(self) -> None:
        """See SandboxProvider."""
        async with self._opening:
            await asyncio.gather(*(sandbox.close() for sandbox in list(self._sandboxes.values())))
            if self._host is not None and self._spawner is not None:
                await asyncio.get_running_loop().run_in_executor(self._spawner, self._host.close)
                self._spawner.shutdown(wait=False)
            self._host = self._spawner = self._shelf = None

    async def _open(self) -> LocalHost:
        if self._host is not None:
            return self._host
        async with self._opening:
            if self._host is None:
                # The kernel ends a sandbox with the thread that started it: these live with the provider.
                self._spawner = ThreadPoolExecutor(_SPAWNERS, thread_name_prefix="orchard-local")
                self._host = await asyncio.get_running_loop().run_in_executor(self._spawner, self._find_host)
                self._shelf = SnapshotShelf(self._host, self.name)
            return self._host

    def _find_host(self) -> LocalHost:
        reap(self._config.state_dir)
        return open_host(self._config)


class _Copies:
    """Honours `orchard_core.sandbox.place.Copies` for one sandbox."""

    def __init__(self, provider: LocalProvider, box: LocalBox, spec: SandboxSpec) -> None:
        self._provider = provider
        self._box = box
        self._spec = spec

    async def snapshot(self) -> Snapshot:
        return (await self._provider.save(self._box, self._spec)).snapshot

    async def fork(self, count: int) -> list[Sandbox]:
        return list(await self._provider.fork(self._box, self._spec, count))


def _capabilities(host: LocalHost) -> Capabilities:
    return Capabilities(
        images=frozenset({"host", "rootfs"} if host.overlays else {"host"}),
        networks=frozenset(NetworkMode),
        mounts=True,
        snapshot=True,
        fork=True,
        pty=True,
        limits=enforcers(host.cgroups.limits),
    )
