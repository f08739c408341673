"""One sandbox's pod."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from orchard_core import (
    AgentClient,
    AgentEndpoint,
    AgentRefused,
    CreationStep,
    OrchardError,
    Outlet,
    SandboxConnectionLost,
    SandboxCreateFailed,
    SandboxError,
    SandboxGone,
    SandboxOutOfMemory,
    SandboxSpec,
    SpecRefused,
    needs_outlet,
    note_step,
    renew_agent,
)
from orchard_env.kubernetes import labels
from orchard_env.kubernetes.faults import ObjectMissing
from orchard_env.kubernetes.informer import PodChange
from orchard_env.kubernetes.manifest import pod_manifest
from orchard_env.kubernetes.pods import PodView
from orchard_env.kubernetes.resources import PODS
from orchard_env.kubernetes.session import ClusterSession
from orchard_env.kubernetes.tokens import derive_token

_PAUSE_S = 0.005
_PAUSE_MAX_S = 0.05
_TRY_S = 5.0
_START_MB = 16
_ATTACH_S = 15.0
_RESTART_S = 30.0
_VERDICT_S = 5.0
_PARTING_S = 1.0
_REACH = "{where} must be reachable from here: run the driver in the cluster, or use a service there"
_T = TypeVar("_T")


class Fill(Protocol):
    """Puts saved files into one sandbox."""

    async def into(self, client: AgentClient) -> None:
        """Once, before anything runs there. Raises SandboxError."""

    def end(self) -> None:
        """It is not needed any more; repeated calls are fine."""


class PodPlace:
    """Honours StandingPlace and WatchedPlace. Its pod exists; whether an agent runs there is to be seen."""

    def __init__(
        self,
        session: ClusterSession,
        spec: SandboxSpec,
        pod: PodView,
        *,
        client: AgentClient | None = None,
        fill: Fill | None = None,
    ) -> None:
        """`client`: of the agent of a pod that was claimed, where nothing has run yet. `fill` brings saved
        files."""
        self._session = session
        self._spec = spec
        self._pod = pod
        self._id = labels.sandbox_id(pod)
        self._claimed = client
        self._fill = fill
        self._memory_mb: int | None = None
        self._generation = labels.generation(pod.annotations)
        self._client: AgentClient | None = None
        self._outlet: Outlet | None = None
        self._destroyed = False
        self._told: Callable[[SandboxGone], None] = _nobody
        self._unsubscribe: Callable[[], None] = _nothing
        self._falling: asyncio.Task[None] | None = None

    @property
    def workdir(self) -> str:
        """See NewPlace."""
        return self._spec.workdir

    @property
    def in_use(self) -> bool:
        """An agent of it was met, and it was not destroyed."""
        return self._client is not None and not self._destroyed

    @property
    def destroyed(self) -> bool:
        """`destroy` was called."""
        return self._destroyed

    async def restart(self) -> AgentClient:
        """See Place."""
        if self._client is None:
            client = await self._first()
            try:
                if self._fill is not None:
                    await self._fill.into(client)
            except BaseException:
                await client.close()
                raise
            return client
        # What the annotation says must be known before the agent knows it: who adopts tries the one before.
        generation = self._generation + 1
        await self._annotate(generation)
        client = await renew_agent(self._endpoint(), self._token(generation), timeout=_RESTART_S)
        self._generation = generation
        return await self._ready(client, at_once=True)

    async def attach(self) -> AgentClient:
        """See StandingPlace."""
        try:
            async with asyncio.timeout(_ATTACH_S):
                self._pod = await self._session.waiter.reach(self._pod.name, _has_address, _ATTACH_S)
                client = await self._or_fail(self._known(), _ATTACH_S)
        except TimeoutError as error:
            raise SandboxConnectionLost(
                f"sandbox {self._id} stands, but its agent at {self._url} did not answer within "
                f"{_ATTACH_S:g} s",
                hint=_REACH.format(where="pods"),
            ) from error
        try:
            await self._own()
        except BaseException:
            await client.close()
            raise
        return await self._ready(client, at_once=False)

    async def _first(self) -> AgentClient:
        if self._claimed is not None:
            return await self._ready(self._claimed, at_once=True)
        config = self._session.config
        for more in range(config.escalation.times, -1, -1):
            try:
                return await self._begin()
            except (SandboxOutOfMemory, SpecRefused) as error:
                memory = self._memory_mb or self._spec.memory_mb or config.default_memory_mb
                if memory is None or not _too_small(error, memory):
                    raise
                if not more:
                    raise SandboxCreateFailed(
                        f"{memory} MiB do not suffice to begin. {error.message}",
                        hint="give it more memory_mb, or let the option `escalation` do so",
                    ) from error
                await self._again(round(memory * config.escalation.factor))
        raise AssertionError("unreachable")

    async def _begin(self) -> AgentClient:
        limit = self._session.config.create_timeout_s
        try:
            async with asyncio.timeout(limit):
                self._pod = await self._session.waiter.reach(self._pod.name, _has_address, limit)
                note_step(CreationStep.SCHEDULED)
                client = AgentClient(self._endpoint())
                try:
                    # What was between its address and its container: the node had to fetch the image.
                    note_step(CreationStep.PULLED, ago_s=await self._or_fail(_answers(client), limit))
                except BaseException:
                    await client.close()
                    raise
        except TimeoutError as error:
            raise SandboxCreateFailed(
                f"sandbox {self._id}: its agent did not answer within {limit:g} s. {error}",
                hint=_REACH.format(where=self._url or "the addresses of pods"),
            ) from error
        return await self._ready(client, at_once=True)

    async def _again(self, memory_mb: int) -> None:
        """Another pod of the same name, with more memory: nothing has run in the old one."""
        session, name, uid = self._session, self._pod.name, self._pod.uid
        await session.remove(name, uid)
        await session.pods.until(name, lambda pod: pod is None or pod.uid != uid, _RESTART_S)
        manifest = pod_manifest(name, self._spec, session.config, session.owner, memory_mb=memory_mb)
        self._pod = await session.create(manifest)
        self._memory_mb = memory_mb

    async def _ready(self, client: AgentClient, *, at_once: bool) -> AgentClient:
        """The way out leads through this process from now on."""
        self._client = client
        if needs_outlet(self._spec.network):
            try:
                if self._outlet is None:
                    outlet = Outlet(self._spec.network)
                    await outlet.open()
                    self._outlet = outlet
                await self._outlet.connect(client, at_once=at_once)
            except (OSError, SandboxError) as error:
                raise SandboxCreateFailed(f"sandbox {self._id} has no way out: {error}") from error
        return client

    async def _known(self) -> AgentClient:
        """A client whose token the agent takes: of the generation that is written, or of the one before, when
        a restart was cut short between the two."""
        while True:
            for generation in {self._generation, max(0, self._generation - 1)}:
                client = AgentClient(self._endpoint(generation))
                try:
                    async with asyncio.timeout(_TRY_S):
                        await client.health()
                    self._generation = generation
                    return client
                except (AgentRefused, SandboxConnectionLost, SandboxGone, TimeoutError):
                    await client.close()
                except BaseException:
                    await client.close()
                    raise
            await asyncio.sleep(_PAUSE_MAX_S)

    async def _or_fail(self, work: Awaitable[_T], limit: float) -> _T:
        """What `work` gives, or the cluster's reason why it never will."""
        working = asyncio.ensure_future(work)
        watching = asyncio.ensure_future(self._failure(limit))
        try:
            await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            watching.result()
            raise TimeoutError
        finally:
            for task in (working, watching):
                task.cancel()
            await asyncio.gather(working, watching, return_exceptions=True)

    async def _failure(self, limit: float) -> None:
        """Raises what is wrong with the pod, TimeoutError when nothing is."""
        uid, name = self._pod.uid, self._pod.name
        await self._session.waiter.reach(name, lambda pod: pod.uid != uid, limit)
        raise SandboxGone(f"sandbox {self._id} is gone; another of the same name stands now")

    async def _own(self) -> None:
        """Have this driver's lease keep it alive. Raises SandboxGone, SandboxUnavailable."""
        # Known before the label says so: a pod in our name that nobody here knows would be taken for a stray.
        held, name = self._session.held, self._pod.name
        held.add(name)
        if self._pod.labels.get(labels.DRIVER) == self._session.driver:
            return
        about = {"uid": self._pod.uid, "labels": {labels.DRIVER: self._session.driver}}
        try:
            await self._patch({"metadata": about})
        except BaseException:
            held.discard(name)
            raise

    async def _annotate(self, generation: int) -> None:
        annotations = {labels.GENERATION: str(generation)}
        await self._patch({"metadata": {"uid": self._pod.uid, "annotations": annotations}})

    async def _patch(self, patch: dict[str, object]) -> None:
        try:
            self._session.pods.learn(await self._session.api.patch(PODS, self._pod.name, patch))
        except ObjectMissing as error:
            raise SandboxGone(f"sandbox {self._id} is gone: its pod was deleted") from error

    @property
    def _url(self) -> str:
        return labels.agent_url(self._pod, self._session.config.agent_port)

    def _token(self, generation: int) -> str:
        # The first agent of a pod knows no other id than the pod's name; see PoolConfig.
        own = self._id if generation else self._pod.name
        return derive_token(self._session.seed, own, self._pod.uid, generation)

    def _endpoint(self, generation: int | None = None) -> AgentEndpoint:
        wanted = self._generation if generation is None else generation
        return AgentEndpoint(url=self._url, token=self._token(wanted), sandbox_id=self._pod.name)

    def root_client(self) -> AgentClient:
        """Another client of its agent, which may do everything. Raises SandboxGone."""
        why = self.ended()
        if why is not None:
            raise SandboxGone(why)
        return AgentClient(self._endpoint())

    def ended(self) -> str | None:
        """See Place."""
        error = self._known_failure()
        return None if error is None else error.message

    def _known_failure(self) -> SandboxError | None:
        pod = self._session.pods.get(self._pod.name)
        if pod is None or pod.uid != self._pod.uid:
            return SandboxGone(f"sandbox {self._id} is gone: its pod was deleted")
        return self._session.waiter.failure(pod)

    def fallen(self) -> SandboxGone | None:
        """See WatchedPlace."""
        error = self._known_failure()
        if error is None or isinstance(error, SandboxGone):
            return error
        return SandboxGone(error.message, hint=error.hint)

    async def verdict(self) -> SandboxGone | None:
        """See TellingPlace. The agent is asked as well: a lost connection alone proves nothing."""
        client = AgentClient(self._endpoint())
        try:
            await self._or_fail(_answers(client), _VERDICT_S)
        except SandboxGone as error:
            return error
        except SandboxError as error:
            return SandboxGone(error.message, hint=error.hint)
        except (OrchardError, TimeoutError):
            return None
        finally:
            await client.close()
        return None

    def on_fall(self, told: Callable[[SandboxGone], None]) -> None:
        """See WatchedPlace."""
        self._told = told
        self._unsubscribe = self._session.pods.subscribe(self._changed)

    def _changed(self, change: PodChange) -> None:
        """A pod that is gone or has ended tells; one that is being deleted may take its time."""
        if change.name != self._pod.name or self._destroyed or self._falling is not None:
            return
        after = change.after
        if after is None or after.uid != self._pod.uid or not labels.stands(after):
            self._falling = asyncio.create_task(self._fall())

    async def _fall(self) -> None:
        try:
            await self._failure(_VERDICT_S)
        except SandboxGone as error:
            reason = error
        except (OrchardError, TimeoutError) as error:
            reason = SandboxGone(self.ended() or f"sandbox {self._id} is gone: {error}")
        self._told(reason)

    async def destroy(self) -> None:
        """See Place. The agent is told as well, so that its container need not be waited for."""
        if self._destroyed:
            return
        self._destroyed = True
        if self._fill is not None:
            self._fill.end()
        await self.let_go()
        self._unsubscribe()
        await asyncio.gather(self._part(), self._session.remove(self._pod.name, self._pod.uid))
        self._session.held.discard(self._pod.name)

    async def _part(self) -> None:
        if self._claimed is not None and self._client is None:
            await self._claimed.close()
        if not self._pod.ip or self._client is None:
            return
        client = AgentClient(self._endpoint())
        with contextlib.suppress(TimeoutError, OrchardError):
            async with asyncio.timeout(_PARTING_S):
                await client.shutdown()
        await client.close()

    async def let_go(self) -> None:
        """End what leads out of it through this process."""
        if self._outlet is not None:
            outlet, self._outlet = self._outlet, None
            with contextlib.suppress(RuntimeError):  # its loop is closed
                await outlet.close()


def _nobody(_: SandboxGone) -> None:
    """Nobody asked to be told."""


def _nothing() -> None:
    """There is no subscription."""


def _too_small(error: SandboxError, memory_mb: int) -> bool:
    """Whether memory is why nothing began: the kernel killed it, or no container could be set up in so
    little."""
    if isinstance(error, SandboxOutOfMemory):
        return True
    return memory_mb < _START_MB and "StartError" in error.message


def _has_address(pod: PodView) -> bool:
    return bool(pod.ip)


async def _answers(client: AgentClient) -> float:
    """Until the agent lets us in: its age, seconds. An address may have been another pod's until just now."""
    pause = _PAUSE_S
    while True:
        try:
            async with asyncio.timeout(_TRY_S):
                return (await client.health()).uptime
        except (AgentRefused, SandboxConnectionLost, SandboxGone, TimeoutError):
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _PAUSE_MAX_S)
