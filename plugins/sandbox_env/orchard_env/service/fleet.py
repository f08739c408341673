"""Every sandbox that the service has, over any provider."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TypeVar

from orchard_core import (
    AdoptingProvider,
    CreateTimedOut,
    CreationStep,
    OrchardError,
    Sandbox,
    SandboxCreateFailed,
    SandboxExists,
    SandboxGone,
    SandboxProvider,
    SandboxSpec,
    ServiceOverloaded,
    Snapshot,
    creation_steps,
)
from orchard_env.service.defaults import NoMeters
from orchard_env.service.entry import TENANT_LABEL, Entry, Status
from orchard_env.service.faults import SandboxUnknown
from orchard_env.service.heartbeats import Heartbeats, OwnHeartbeats
from orchard_env.service.log import SERVICE
from orchard_env.service.seams import Making, Meters
from orchard_env.service.settings import ServiceSettings

_T = TypeVar("_T")

Gone = Callable[[str, str], Awaitable[None]]
"""Told a tenant's name and the id of a sandbox of it that is no more."""

_SWEEP_S = 1.0
_TELL_S = 600.0
"""So long a sandbox that failed is still told of."""
_TELL_MOST = 1024
"""Of so many that failed at most: those of late. They count in no quota, so nothing else bounds them."""


async def _unasked(entry: Entry) -> None:
    """Nobody wants to know."""


async def _nobody(tenant: str, sandbox_id: str) -> None:
    """Nobody counts."""


class Fleet:
    """The sandboxes of one provider. What stands there is the truth; the entries are a cache of it."""

    def __init__(
        self,
        provider: SandboxProvider,
        *,
        settings: ServiceSettings,
        heartbeats: Heartbeats | None = None,
        gone: Gone = _nobody,
        meters: Meters | None = None,
    ) -> None:
        """`gone` is awaited for each sandbox that ends or does not come up."""
        self.provider = provider
        """Who makes them."""
        self._adopting = provider if isinstance(provider, AdoptingProvider) else None
        self._settings = settings
        self._heartbeats = heartbeats or OwnHeartbeats()
        self._gone = gone
        self._meters = meters or NoMeters()
        self.before_end: Callable[[Entry], Awaitable[None]] = _unasked
        """Awaited before a sandbox that is well is destroyed by the fleet; brief, and never raises."""
        self._entries: dict[str, Entry] = {}
        self._makings: dict[str, asyncio.Task[None]] = {}
        self._ends: dict[str, asyncio.Task[None]] = {}
        self._finds: dict[tuple[str, str | None], asyncio.Task[Entry | None]] = {}
        self._sweeping: asyncio.Task[None] | None = None
        self._ending = asyncio.Event()

    @property
    def draining(self) -> bool:
        """Whether it takes no new sandboxes any more."""
        return self._ending.is_set()

    def begin_drain(self) -> None:
        """From now on nothing new is taken, and nobody waits."""
        self._ending.set()

    async def unless_draining(self, work: Coroutine[None, None, _T]) -> _T | None:
        """What the work gives; None, and it is cancelled, when the service begins to end before that."""
        doing = asyncio.ensure_future(work)
        ending = asyncio.ensure_future(self._ending.wait())
        try:
            await asyncio.wait((doing, ending), return_when=asyncio.FIRST_COMPLETED)
            return doing.result() if doing.done() else None
        finally:
            doing.cancel()
            ending.cancel()
            await asyncio.gather(doing, ending, return_exceptions=True)

    @property
    def adopts(self) -> bool:
        """Whether the sandboxes outlive this process."""
        return self._adopting is not None

    @property
    def size(self) -> int:
        """Sandboxes that this process knows of."""
        return len(self._entries)

    async def start(self) -> None:
        """Begin to look after them. Raises SandboxUnavailable when the provider can do nothing."""
        await self.provider.capabilities()
        self._sweeping = asyncio.create_task(self._sweep())

    async def create(
        self,
        spec: SandboxSpec,
        *,
        tenant: str,
        restore: Snapshot | None = None,
        limit_s: float | None = None,
        slot: AbstractAsyncContextManager[None] | None = None,
    ) -> Entry:
        """An entry that is pending, at once; the sandbox comes up behind it, within `limit_s` seconds or not
        at all. `spec.name` is the id asked for. `slot` is entered here and left when it is up.
        Raises SandboxExists, ServiceOverloaded and what entering the slot raises."""
        self._refuse_now()
        if spec.name in self._entries or spec.name in self._ends:
            raise _taken(str(spec.name))
        name = spec.name or f"sb-{secrets.token_hex(8)}"
        labels = {**spec.labels, TENANT_LABEL: tenant}
        spec = spec.model_copy(update={"name": name, "labels": labels})
        entry = Entry(sandbox_id=name, spec=spec, created=time.time())
        self._entries[name] = entry
        stack = AsyncExitStack()
        came = time.monotonic()
        try:
            if slot is not None:
                await stack.enter_async_context(slot)
        except BaseException:
            self._drop(entry)
            raise
        entry.queued_s = time.monotonic() - came
        making = asyncio.create_task(self._make(entry, restore, limit_s or self._settings.create_s, stack))
        self._makings[name] = making
        making.add_done_callback(lambda _: self._makings.pop(name, None))
        return entry

    def _refuse_now(self) -> None:
        if self.draining:
            raise ServiceOverloaded(
                "this service is ending and makes no more sandboxes", retry_after_s=5.0, hint="come again"
            )
        most = self._settings.max_sandboxes
        if most and len(self._entries) >= most:
            raise ServiceOverloaded(
                f"all {most} sandboxes of this service are in use", retry_after_s=5.0, hint="delete some"
            )

    async def check_free(self, name: str, tenant: str) -> None:
        """Whether a sandbox of this name stands anywhere; what a former one of this tenant left is put away.
        Raises SandboxExists, and SandboxUnavailable when that cannot be known."""
        known = self._entries.get(name)
        if known is not None and known.status is Status.FAILED and known.tenant == tenant:
            await self.delete(known)  # nothing of it stands
        while name in self._ends:
            await asyncio.wait([self._ends[name]])
        if name in self._entries or await self._stands(name):
            raise _taken(name)

    async def _stands(self, name: str) -> bool:
        """Whether it does, whoever's; nothing is taken over."""
        seen: list[SandboxSpec] = []

        def see(spec: SandboxSpec) -> bool:
            seen.append(spec)
            return False

        if self._adopting is not None:
            with contextlib.suppress(SandboxGone):
                await self._adopting.adopt(name, wanted=see)
        return bool(seen)

    def known(self) -> builtins.list[Entry]:
        """What this process knows of, whoever's."""
        return [*self._entries.values()]

    async def _make(
        self, entry: Entry, restore: Snapshot | None, limit_s: float, stack: AsyncExitStack
    ) -> None:
        began = time.monotonic()
        steps: Mapping[CreationStep, float] = {}
        try:
            async with asyncio.timeout(limit_s):
                with creation_steps() as steps:
                    sandbox = await self.provider.create(entry.spec, restore=restore)
            entry.succeed(sandbox)
        except asyncio.CancelledError:
            entry.fail(SandboxGone(f"sandbox {entry.id} was deleted while it was made"))
            raise
        except TimeoutError:
            entry.fail(
                CreateTimedOut(
                    f"sandbox {entry.id} was not ready within {limit_s:g} s",
                    hint="ask for a longer `timeout`",
                )
            )
        except OrchardError as error:
            entry.fail(error)
        except Exception as error:  # noqa: BLE001 - a plugin's: whatever it raises fails this sandbox only
            SERVICE.exception("a provider broke", extra={"fields": {"sandbox_id": entry.id}})
            entry.fail(SandboxCreateFailed(f"sandbox {entry.id}: {type(error).__name__}: {error}"))
        finally:
            await stack.aclose()
            self._meters.created(
                Making(
                    sandbox_id=entry.id,
                    tenant=entry.tenant,
                    spec=entry.spec,
                    queued_s=entry.queued_s,
                    seconds=time.monotonic() - began,
                    steps=steps,
                    fault=entry.fault,
                )
            )

    async def get(self, sandbox_id: str, *, tenant: str | None) -> Entry:
        """The entry of that id if it is this tenant's; None: whoever's (an administrator asks). A miss asks
        the provider. Raises SandboxUnknown, and SandboxUnavailable when that cannot be known."""
        entry = self._entries.get(sandbox_id)
        if entry is None or isinstance(entry.fault, SandboxExists | SandboxGone):
            # The name may by now be that of another sandbox, which another process made.
            entry = await self._find(sandbox_id, tenant) or entry
        elif tenant is not None and entry.tenant != tenant:
            # As much is asked of the provider as for an id that nobody has: the two are not told apart.
            entry = await self._find(f"sb-{secrets.token_hex(8)}", tenant)
        if entry is None or (tenant is not None and entry.tenant != tenant):
            raise SandboxUnknown(
                f"there is no sandbox {sandbox_id[:80]!r}", hint="it may have been deleted, or have expired"
            )
        return entry

    async def _find(self, sandbox_id: str, tenant: str | None) -> Entry | None:
        """Take over one of this tenant's that another process made, None: whoever's; None when there is none:
        a stranger's is left alone, and costs what one costs that nobody has."""
        if self._adopting is None or sandbox_id in self._ends:
            return None
        key = (sandbox_id, tenant)
        finding = self._finds.get(key)
        if finding is None:
            finding = asyncio.create_task(self._adopt_found(self._adopting, sandbox_id, tenant))
            self._finds[key] = finding
            finding.add_done_callback(lambda _: self._finds.pop(key, None))
        return await asyncio.shield(finding)

    async def _adopt_found(
        self, provider: AdoptingProvider, sandbox_id: str, tenant: str | None
    ) -> Entry | None:
        def wanted(spec: SandboxSpec) -> bool:
            return tenant is None or spec.labels.get(TENANT_LABEL, "") == tenant

        try:
            sandbox = await provider.adopt(sandbox_id, wanted=wanted)
        except SandboxGone:
            return None
        known = self._entries.get(sandbox_id)
        if known is not None and known.fault is None:
            return known
        return self._enter(sandbox, sandbox.spec)

    def _enter(self, sandbox: Sandbox, spec: SandboxSpec) -> Entry:
        entry = Entry(sandbox_id=sandbox.id, spec=spec, created=time.time())
        entry.succeed(sandbox)
        self._entries[sandbox.id] = entry
        self._meters.adopted(entry.id, entry.tenant, spec)
        return entry

    async def list(self, *, tenant: str | None) -> builtins.list[Entry]:
        """Every entry of a tenant, or of all, oldest first. Raises SandboxUnavailable."""
        entries = dict(self._entries)
        if self._adopting is not None:
            for found in await self._adopting.standing():
                if found.id not in entries and found.id not in self._ends:
                    entries[found.id] = Entry(
                        sandbox_id=found.id, spec=found.spec, created=found.created, found=True
                    )
        mine = (entry for entry in entries.values() if tenant is None or entry.tenant == tenant)
        return sorted(mine, key=lambda entry: entry.created)

    def adopt(self, sandboxes: Sequence[Sandbox], *, tenant: str) -> builtins.list[Entry]:
        """Entries of sandboxes that came up otherwise, such as forks, whose labels say whose they are. Raises
        ValueError for a stranger's."""
        if any(sandbox.spec.labels.get(TENANT_LABEL) != tenant for sandbox in sandboxes):
            raise ValueError("a fork has its origin's tenant")
        return [self._enter(sandbox, sandbox.spec) for sandbox in sandboxes]

    async def delete(self, entry: Entry) -> None:
        """End the sandbox, or its making; it is gone when this returns, whoever is cancelled meanwhile."""
        ending = self._ends.get(entry.id)
        if ending is None:
            self._drop(entry)
            ending = asyncio.create_task(self._end(entry))
            self._ends[entry.id] = ending
            ending.add_done_callback(lambda _: self._ends.pop(entry.id, None))
        await asyncio.shield(ending)

    async def _end(self, entry: Entry) -> None:
        making = self._makings.get(entry.id)
        if making is not None:
            making.cancel()
            await asyncio.gather(making, return_exceptions=True)
        if entry.status is Status.READY:
            await self.before_end(entry)
        self._meters.ended(entry.id, entry.fault)
        await entry.close()
        await self._heartbeats.forget(entry.id)
        await self._gone(entry.tenant, entry.id)

    def _drop(self, entry: Entry) -> None:
        if self._entries.get(entry.id) is entry:
            del self._entries[entry.id]

    async def beat(self, entry: Entry) -> None:
        """A heartbeat came: from now on the sandbox is destroyed when no more come. Raises its fault."""
        _ = entry.sandbox if entry.status is not Status.PENDING else None
        await self._heartbeats.beat(entry.id)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_S)
            try:
                await self._sweep_once()
            except OrchardError as error:  # the store of heartbeats or the provider is away: nothing is done
                SERVICE.warning("a sweep was put off: %s", error.message)

    async def _sweep_once(self) -> None:
        failed = [entry for entry in self._entries.values() if entry.fault is not None]
        for entry in failed:
            if not entry.counted_out:
                entry.counted_out = True
                self._meters.ended(entry.id, entry.fault)
                await self._gone(entry.tenant, entry.id)
        failed.sort(key=lambda entry: entry.failed_s)
        for rank, entry in enumerate(failed):
            if rank >= _TELL_MOST or entry.failed_s > _TELL_S:
                await self.delete(entry)
        for sandbox_id in await self._heartbeats.overdue(self._settings.heartbeat_s):
            with contextlib.suppress(SandboxUnknown):
                entry = await self.get(sandbox_id, tenant=None)
                SERVICE.info("no heartbeat any more", extra={"fields": {"sandbox_id": sandbox_id}})
                await self.delete(entry)
            await self._heartbeats.forget(sandbox_id)

    async def drain(self) -> None:
        """The service ends: what outlives it is let go, the rest is destroyed. It says which in the log."""
        self.begin_drain()
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.gather(self._sweeping, return_exceptions=True)
        await self._settle_makings()
        if self._adopting is not None:
            self._say("sandboxes are left standing for the next process")
            await self._adopting.release()
        else:
            self._say("sandboxes are destroyed: this provider's do not outlive the service")
            await self.provider.close()

    async def _settle_makings(self) -> None:
        """What is being made comes up, for a while; then it is given up, and nothing of it is left."""
        makings = list(self._makings.values())
        if makings:
            _, late = await asyncio.wait(makings, timeout=self._settings.drain_s)
            for making in late:
                making.cancel()
            await asyncio.gather(*makings, return_exceptions=True)
        await asyncio.gather(*self._ends.values(), return_exceptions=True)

    def _say(self, what: str) -> None:
        level = logging.INFO if self.adopts or not self._entries else logging.WARNING
        SERVICE.log(level, "%d %s", len(self._entries), what)


def _taken(name: str) -> SandboxExists:
    return SandboxExists(
        f"a sandbox named {name} stands already", hint="delete that one first, or choose another id"
    )
