"""A sandbox provider for authors: they say where an agent can run, and everything else is here.

AgentProvider(name="mine", capabilities=CAPABILITIES, places=MyPlaces())
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol, runtime_checkable
from weakref import WeakValueDictionary

from orchard_core.errors import ConfigError, SandboxError, SandboxGone, SandboxUnsupported
from orchard_core.sandbox.agent import AgentClient
from orchard_core.sandbox.agent_sandbox import AgentSandbox
from orchard_core.sandbox.closing import each_closed
from orchard_core.sandbox.contract import Sandbox
from orchard_core.sandbox.forking import check_count, make_all
from orchard_core.sandbox.furnish import check_spec, furnish, name_for
from orchard_core.sandbox.lifetime import watch_lifetime
from orchard_core.sandbox.place import Copies, Place, ProlongingPlace, TellingPlace, WatchedPlace
from orchard_core.sandbox.steps import CreationStep, note_step
from orchard_core.sandbox.unbroken import unbroken
from orchard_core.types.sandbox import Capabilities, SandboxSpec, Snapshot, StandingSandbox


class NewPlace(Place, Protocol):
    """A place in which no agent runs yet: `restart` starts the first."""

    @property
    def workdir(self) -> str:
        """Where commands start, a path inside: the spec's own, unless it stands for another."""


class Places(Protocol):
    """Where the sandboxes of one provider live."""

    async def place(self, sandbox_id: str, spec: SandboxSpec) -> NewPlace:
        """A place for one sandbox. Raises SandboxUnsupported before it makes anything when the spec asks
        for what cannot be had, and SandboxUnavailable, SandboxCreateFailed."""

    async def close(self) -> None:
        """Give back what all of them share; their sandboxes are closed by then."""


@runtime_checkable
class SavingPlaces(Places, Protocol):
    """Places whose files can be saved. A provider of them may claim the capabilities snapshot and fork."""

    async def save(self, place: NewPlace, spec: SandboxSpec) -> Snapshot:
        """A copy of all that was written in one of them, which outlives it and never changes. Stop what runs
        there meanwhile where that can be done. Raises SandboxGone, DiskFull; nothing is left then, nor when
        the call is cancelled."""

    async def restore(self, sandbox_id: str, spec: SandboxSpec, snapshot: Snapshot) -> NewPlace:
        """As `place`, with the files of a snapshot. Raises likewise, SnapshotMissing, DiskFull, and
        SandboxUnsupported when it was saved under another image or user."""

    async def discard(self, snapshot: Snapshot) -> None:
        """Remove it, when what is being restored from it stands; fine when it is gone."""


class StandingPlace(NewPlace, Protocol):
    """A place whose agent may run already, started by another process."""

    async def attach(self) -> AgentClient:
        """A client of the agent that runs there; nothing is restarted. Raises SandboxGone,
        SandboxConnectionLost."""


@runtime_checkable
class AdoptingPlaces(Places, Protocol):
    """Places that outlive the process that made them. Their `place` raises SandboxExists for an id that is
    taken anywhere."""

    async def standing(self) -> list[StandingSandbox]:
        """See AdoptingProvider."""

    async def find(self, sandbox_id: str) -> tuple[StandingPlace, StandingSandbox]:
        """One that stands. Raises SandboxGone when none of that id does, SandboxUnavailable."""


class AgentProvider:
    """Honours `orchard_core.SandboxProvider`."""

    def __init__(
        self, *, name: str, capabilities: Capabilities, places: Places, keeps_time: bool = True
    ) -> None:
        """Without `keeps_time` the places end sandboxes themselves when their life span or their idle time
        is over. Raises ConfigError when the capabilities claim snapshots and forks, which go together here,
        and the places cannot save."""
        able = isinstance(places, SavingPlaces)
        if capabilities.snapshot != capabilities.fork or (capabilities.snapshot and not able):
            raise ConfigError(
                f"the provider {name} claims snapshots or forks that its places cannot make",
                hint="claim both and give the places `save`, `restore` and `discard`, or claim neither",
            )
        self._name = name
        self._capabilities = capabilities
        self._places = places
        self._keeps_time = keeps_time
        self._sandboxes: dict[str, AgentSandbox] = {}
        self._names: set[str] = set()
        self._watchers: dict[str, asyncio.Task[None]] = {}

    @property
    def name(self) -> str:
        """See SandboxProvider."""
        return self._name

    async def capabilities(self) -> Capabilities:
        """See SandboxProvider."""
        return self._capabilities

    async def create(self, spec: SandboxSpec, *, restore: Snapshot | None = None) -> AgentSandbox:
        """See SandboxProvider."""
        check_spec(spec)
        self._refuse(spec, restore)
        sandbox_id = name_for(spec, self._name, self._names)
        self._names.add(sandbox_id)
        try:
            bare = await self._place(sandbox_id, spec, restore)
        except BaseException:
            self._names.discard(sandbox_id)
            raise
        note_step(CreationStep.PLACED)
        place = self._kept(sandbox_id, bare)
        try:
            client = await place.restart()
        except BaseException:
            await unbroken(place.destroy())
            raise
        note_step(CreationStep.ANSWERED)
        sandbox = self._sandbox(sandbox_id, spec, place, bare, client)
        try:
            await furnish(sandbox, restored=restore is not None)
        except BaseException:
            await sandbox.close()
            raise
        note_step(CreationStep.FURNISHED)
        self._sandboxes[sandbox_id] = sandbox
        self._watch(sandbox)
        return sandbox

    def _watch(self, sandbox: AgentSandbox, *, age_s: float = 0.0) -> None:
        if self._keeps_time:
            self._watchers[sandbox.id] = asyncio.create_task(watch_lifetime(sandbox, age_s=age_s))

    def _kept(self, sandbox_id: str, place: NewPlace) -> _Kept:
        return _Kept(place, lambda: self._forget(sandbox_id))

    def _forget(self, sandbox_id: str) -> None:
        self._sandboxes.pop(sandbox_id, None)
        self._names.discard(sandbox_id)
        watcher = self._watchers.pop(sandbox_id, None)
        if watcher is not None:
            watcher.cancel()

    def _sandbox(
        self, sandbox_id: str, spec: SandboxSpec, place: _Kept, bare: NewPlace, client: AgentClient
    ) -> AgentSandbox:
        sandbox = AgentSandbox(
            sandbox_id=sandbox_id,
            spec=spec.model_copy(update={"workdir": place.workdir}),
            capabilities=self._capabilities,
            place=place,
            client=client,
            copies=self._copies(bare, spec),
        )
        place.on_fall(sandbox.fall)
        return sandbox

    async def discard(self, snapshot: Snapshot) -> None:
        """See SandboxProvider."""
        if isinstance(self._places, SavingPlaces) and snapshot.provider == self._name:
            await self._places.discard(snapshot)

    async def _place(self, sandbox_id: str, spec: SandboxSpec, restore: Snapshot | None) -> NewPlace:
        if restore is None:
            return await self._places.place(sandbox_id, spec)
        assert isinstance(self._places, SavingPlaces)
        return await self._places.restore(sandbox_id, spec, restore)

    def _copies(self, place: NewPlace, spec: SandboxSpec) -> Copies | None:
        """Forks are restored snapshots, which nobody else sees."""
        if not self._capabilities.snapshot or not isinstance(self._places, SavingPlaces):
            return None
        return _Saving(self, self._places, place, spec)

    def _refuse(self, spec: SandboxSpec, restore: Snapshot | None) -> None:
        able = self._capabilities
        refused = {
            f"the image {spec.image}": spec.image.kind not in able.images,
            f"the network policy {spec.network.mode.value}": able.isolated
            and spec.network.mode not in able.networks,
            "snapshots": restore is not None and not able.snapshot,
            f"a snapshot of {restore.provider if restore else ''}": restore is not None
            and restore.provider != self._name,
        }
        for what, wanted in refused.items():
            if wanted:
                raise SandboxUnsupported(
                    f"the provider {self._name} cannot give {what}", hint="use the provider `local`"
                )

    async def close(self) -> None:
        """See SandboxProvider."""
        await each_closed(self._sandboxes.values(), AgentSandbox.close)
        await self._places.close()


class AdoptingAgentProvider(AgentProvider):
    """An AgentProvider whose places are AdoptingPlaces. Honours `orchard_core.AdoptingProvider`."""

    def __init__(
        self, *, name: str, capabilities: Capabilities, places: AdoptingPlaces, keeps_time: bool = True
    ) -> None:
        super().__init__(name=name, capabilities=capabilities, places=places, keeps_time=keeps_time)
        self._standing = places
        self._adopting: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def standing(self) -> list[StandingSandbox]:
        """See AdoptingProvider."""
        return await self._standing.standing()

    async def adopt(
        self, sandbox_id: str, *, wanted: Callable[[SandboxSpec], bool] | None = None
    ) -> AgentSandbox:
        """See AdoptingProvider."""
        # One that is slow to be found or attached to keeps nobody from the others.
        async with self._adopting.setdefault(sandbox_id, asyncio.Lock()):
            known = self._sandboxes.get(sandbox_id)
            if known is not None and known.ended is None:
                _check_wanted(known.spec, wanted)
                return known
            # When none stands, what is left of one that has ended stays its holder's to close.
            bare, found = await self._standing.find(sandbox_id)
            _check_wanted(found.spec, wanted)
            if known is not None:
                await known.release()  # another process ended it, and made one of that name anew
                self._forget(sandbox_id)
            client = await bare.attach()
            try:
                age_s = await _age_s(found, client)
            except BaseException:
                await unbroken(client.close())
                raise
            self._names.add(sandbox_id)
            place = self._kept(sandbox_id, bare)
            sandbox = self._sandbox(sandbox_id, found.spec, place, bare, client)
            self._sandboxes[sandbox_id] = sandbox
            self._watch(sandbox, age_s=age_s)
            return sandbox

    async def release(self) -> None:
        """See AdoptingProvider."""
        for watcher in self._watchers.values():
            watcher.cancel()
        await each_closed(self._sandboxes.values(), AgentSandbox.release)
        self._sandboxes.clear()
        self._watchers.clear()
        self._names.clear()
        await self._places.close()


async def _age_s(found: StandingSandbox, client: AgentClient) -> float:
    """By the wall clock, but no more than its agent is old: the clock may have stepped since."""
    if found.age_s is not None:
        return found.age_s
    age_s = max(0.0, time.time() - found.created)
    try:
        return min(age_s, (await client.health()).uptime)
    except SandboxError:
        return age_s  # it is as good as gone


def _check_wanted(spec: SandboxSpec, wanted: Callable[[SandboxSpec], bool] | None) -> None:
    if wanted is not None and not wanted(spec):
        raise SandboxGone("the sandbox of that name is not the one that is wanted")


class _Saving:
    """Honours `Copies` for one sandbox, by what its provider and their places can do."""

    def __init__(
        self, provider: AgentProvider, places: SavingPlaces, place: NewPlace, spec: SandboxSpec
    ) -> None:
        self._provider = provider
        self._places = places
        self._place = place
        self._spec = spec

    async def snapshot(self) -> Snapshot:
        return await self._places.save(self._place, self._spec)

    async def fork(self, count: int) -> list[Sandbox]:
        check_count(count)
        saved = await self.snapshot()
        nameless = self._spec.model_copy(update={"name": None})
        try:
            return [*await make_all(lambda: self._provider.create(nameless, restore=saved), count)]
        finally:
            await unbroken(self._places.discard(saved))


class _Kept:
    """A place whose end is noted."""

    def __init__(self, place: NewPlace, on_destroyed: Callable[[], None]) -> None:
        self._place = place
        self._on_destroyed = on_destroyed

    @property
    def workdir(self) -> str:
        return self._place.workdir

    async def restart(self) -> AgentClient:
        return await self._place.restart()

    async def destroy(self) -> None:
        try:
            await self._place.destroy()
        finally:
            self._on_destroyed()

    def ended(self) -> str | None:
        return self._place.ended()

    async def prolong(self, ttl_s: float) -> None:
        if not isinstance(self._place, ProlongingPlace):
            raise SandboxUnsupported(
                "the sandbox's life cannot be extended here", hint="create it with a longer ttl_s"
            )
        await self._place.prolong(ttl_s)

    async def verdict(self) -> SandboxGone | None:
        return await self._place.verdict() if isinstance(self._place, TellingPlace) else None

    def on_fall(self, told: Callable[[SandboxGone], None]) -> None:
        if isinstance(self._place, WatchedPlace):
            self._place.on_fall(told)

    def fallen(self) -> SandboxGone | None:
        return self._place.fallen() if isinstance(self._place, WatchedPlace) else None
