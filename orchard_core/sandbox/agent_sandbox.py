"""The one Sandbox that every provider gives: the agent's client plus what only the provider can do."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import time
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from orchard_core.errors import ConfigError, SandboxConnectionLost, SandboxGone, SandboxUnsupported
from orchard_core.sandbox.agent import AgentClient, AgentMetrics, Tunnel
from orchard_core.sandbox.contract import Command, Process, Sandbox
from orchard_core.sandbox.place import Copies, Place, ProlongingPlace, TellingPlace, WatchedPlace
from orchard_core.sandbox.started import StartedProcess
from orchard_core.sandbox.unbroken import unbroken
from orchard_core.types.model import ModelEndpoint
from orchard_core.types.sandbox import (
    AgentEndpoint,
    Capabilities,
    ExecResult,
    FileEntry,
    LocalAddress,
    PtySize,
    SandboxSpec,
    Snapshot,
)

_ALIVE_S = 5.0


class AgentSandbox:
    """A Sandbox over one agent. See orchard_core.sandbox.contract for what each method promises."""

    def __init__(
        self,
        *,
        sandbox_id: str,
        spec: SandboxSpec,
        capabilities: Capabilities,
        place: Place,
        client: AgentClient,
        copies: Copies | None = None,
    ) -> None:
        """Without `copies`, snapshots and forks are refused, as the capabilities should say."""
        self._id = sandbox_id
        self._spec = spec
        self._capabilities = capabilities
        self._place = place
        self._client = client
        self._copies = copies
        self._tunnels: dict[tuple[str, int], Tunnel] = {}
        self._gone: str | None = None
        self._verdict: SandboxGone | None = None
        self._scopes: set[asyncio.Timeout] = set()
        self._closing: asyncio.Task[None] | None = None
        self._open_calls = 0
        self._copying = 0
        self._resetting = False
        self.probes = 0
        """Questions about the agent's health so far: they are no use of the sandbox."""
        self._last_used = time.monotonic()
        self.deadline: float | None = None
        """When its life ends, monotonic seconds; None where its provider does not keep the time here."""

    @property
    def id(self) -> str:
        """See Sandbox."""
        return self._id

    @property
    def spec(self) -> SandboxSpec:
        """See Sandbox."""
        return self._spec

    @property
    def capabilities(self) -> Capabilities:
        """See Sandbox."""
        return self._capabilities

    @property
    def idle_s(self) -> float:
        """Seconds since the last call ended; 0 while one runs."""
        return 0.0 if self._open_calls else time.monotonic() - self._last_used

    @property
    def ended(self) -> str | None:
        """Why it is of no use any more, as far as is known without asking its agent; None while it is, also
        while its processes are reset."""
        return self._gone or (None if self._resetting else self._place.ended())

    @property
    def fault(self) -> SandboxGone | None:
        """The same as the error that its calls raise, and so of the class that tells the reason."""
        if self._gone is None and not self._resetting:
            fallen = self._place.fallen() if isinstance(self._place, WatchedPlace) else None
            if self._verdict is not None or fallen is not None:
                return self._verdict or fallen
        ended = self.ended
        return None if ended is None else SandboxGone(ended)

    @contextlib.asynccontextmanager
    async def _call(self, *, cut: bool = True) -> AsyncIterator[AgentClient]:
        """Every use of the agent passes here: it counts as activity, and an end gets its reason. Generators
        are not to be cut by `fall`: what would be cancelled is their consumer."""
        if self._gone is not None:
            raise SandboxGone(self._gone)
        if self._verdict is not None:
            raise self._verdict.with_traceback(None)
        self._open_calls += 1
        scope = asyncio.timeout(None)
        try:
            async with scope:
                if cut:
                    self._scopes.add(scope)
                try:
                    yield self._client
                finally:
                    self._scopes.discard(scope)
        except TimeoutError as error:
            reason = self._told() if scope.expired() else None
            if reason is None:
                raise
            raise reason from error
        except (SandboxConnectionLost, SandboxGone) as error:
            reason = await self._why()
            if reason is None:
                raise
            raise reason from error
        finally:
            self._open_calls -= 1
            self._last_used = time.monotonic()

    def fall(self, reason: SandboxGone) -> None:
        """It is dead, says who watches over it: calls under way end now, as later ones will. A connection to
        what is no longer there might hang for a minute."""
        if self._verdict is None:
            self._verdict = reason
        while self._scopes:
            self._scopes.pop().reschedule(0.0)

    def _told(self) -> SandboxGone | None:
        return self._verdict

    async def _why(self) -> SandboxGone | None:
        """Why the agent no longer answers; None when nobody knows."""
        if self._gone is None and isinstance(self._place, TellingPlace):
            told = await self._place.verdict()
            self._verdict = self._verdict or told  # of a fall meanwhile
            if self._verdict is not None and self._gone is None:
                return self._verdict
        reason = self._gone or self._place.ended()
        return None if reason is None else SandboxGone(reason)

    async def exec(
        self,
        command: Command,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | AsyncIterable[bytes] | None = None,
        timeout: float | None = None,
        user: str | None = None,
    ) -> ExecResult:
        """See Sandbox."""
        async with self._call() as client:
            return await client.exec(command, cwd=cwd, env=env, stdin=stdin, timeout=timeout, user=user)

    async def start(
        self,
        command: Command,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        user: str | None = None,
        pty: PtySize | None = None,
    ) -> Process:
        """See Sandbox."""
        if pty is not None and not self._capabilities.pty:
            raise SandboxUnsupported(
                f"sandbox {self._id} gives no terminals", hint="start the command without `pty`"
            )
        async with self._call() as client:
            process = await client.start(command, cwd=cwd, env=env, timeout=timeout, user=user, pty=pty)
        return StartedProcess(process, self._call)

    async def read(self, path: str, *, offset: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        """See Sandbox."""
        async with (
            self._call(cut=False) as client,
            contextlib.aclosing(client.read(path, offset=offset, length=length)) as pieces,
        ):
            async for piece in pieces:
                yield piece

    async def read_bytes(self, path: str, *, limit: int = 64 << 20) -> bytes:
        """See Sandbox."""
        async with self._call() as client:
            return await client.read_bytes(path, limit=limit)

    async def write(
        self, path: str, data: bytes | AsyncIterable[bytes], *, mode: int = 0o644, user: str | None = None
    ) -> None:
        """See Sandbox."""
        async with self._call() as client:
            await client.write(path, data, mode=mode, user=user)

    async def upload(self, source: Path, target: str) -> None:
        """See Sandbox."""
        async with self._call() as client:
            await client.upload(source, target)

    async def download(self, source: str, target: Path) -> None:
        """See Sandbox."""
        async with self._call() as client:
            await client.download(source, target)

    async def read_tree(self, path: str) -> AsyncIterator[bytes]:
        """See Sandbox."""
        async with self._call(cut=False) as client, contextlib.aclosing(client.read_tree(path)) as pieces:
            async for piece in pieces:
                yield piece

    async def write_tree(self, path: str, data: AsyncIterable[bytes]) -> None:
        """See Sandbox."""
        async with self._call() as client:
            await client.write_tree(path, data)

    async def list(self, path: str) -> builtins.list[FileEntry]:
        """See Sandbox."""
        async with self._call() as client:
            return await client.list(path)

    async def stat(self, path: str) -> FileEntry:
        """See Sandbox."""
        async with self._call() as client:
            return await client.stat(path)

    async def mkdir(self, path: str) -> None:
        """See Sandbox."""
        async with self._call() as client:
            await client.mkdir(path)

    async def remove(self, path: str) -> None:
        """See Sandbox."""
        async with self._call() as client:
            await client.remove(path)

    async def forward(self, port: int) -> LocalAddress:
        """See Sandbox."""
        async with self._call() as client:
            return await client.forward(port)

    async def expose_model(self, endpoint: ModelEndpoint) -> ModelEndpoint:
        """See Sandbox. The target is fixed here; the same gateway is exposed once only."""
        url = urlsplit(endpoint.base_url)
        if url.scheme != "http" or not url.hostname or not url.port:
            raise ConfigError(
                f"{endpoint.base_url} cannot be exposed to a sandbox",
                hint="give a gateway session's endpoint, http://HOST:PORT/...; vendors are behind it",
            )
        target = (url.hostname, url.port)
        async with self._call() as client:
            tunnel = self._tunnels.get(target)
            if tunnel is None or not tunnel.alive:
                tunnel = await client.tunnel(LocalAddress(host=target[0], port=target[1]))
                self._tunnels[target] = tunnel
        inside = f"http://{tunnel.address.host}:{tunnel.address.port}"
        return replace(endpoint, base_url=inside + url.path)

    async def endpoint(self) -> AgentEndpoint:
        """See Sandbox. Each call mints a token of its own, which ends with the agent at the latest."""
        async with self._call() as client:
            return await client.mint_token()

    async def extend(self, ttl_s: float) -> None:
        """Let it live at least so many seconds more, from now on. Raises SandboxUnsupported where nobody can
        see to that."""
        async with self._call():
            if self.deadline is not None:
                self.deadline = max(self.deadline, time.monotonic() + ttl_s)
            elif isinstance(self._place, ProlongingPlace):
                await self._place.prolong(ttl_s)
            else:
                raise SandboxUnsupported(
                    f"the life of sandbox {self._id} cannot be extended", hint="create it with a longer ttl_s"
                )

    @contextlib.asynccontextmanager
    async def lent(self) -> AsyncIterator[AgentClient]:
        """Its agent's client with every right, for a service that carries the calls of others and checks
        them. It counts as a call while it is held, and what fails in it gets the sandbox's own reason.
        Raises SandboxGone."""
        async with self._call() as client:
            yield client

    async def withdraw(self, endpoint: AgentEndpoint) -> None:
        """See Sandbox."""
        async with self._call() as client:
            await client.revoke_token(endpoint.token)

    async def metrics(self) -> AgentMetrics:
        """What the agent uses and holds. It does not count as a call."""
        if self._gone is not None:
            raise SandboxGone(self._gone)
        self.probes += 1
        return await self._client.metrics()

    async def reset_processes(self) -> None:
        """See Sandbox. Tunnels and forwards end with the old agent: expose the model again afterwards."""
        async with self._call() as client:
            self._resetting = True
            try:
                await client.close()
                self._tunnels.clear()
                self._client = await self._place.restart()
            finally:
                self._resetting = False

    async def snapshot(self) -> Snapshot:
        """See Sandbox."""
        if self._copies is None:
            raise SandboxUnsupported(
                f"sandbox {self._id} cannot be snapshotted", hint="its capabilities say so: snapshot"
            )
        async with self._standing():
            return await self._copies.snapshot()

    async def fork(self, count: int) -> builtins.list[Sandbox]:
        """See Sandbox."""
        if self._copies is None:
            raise SandboxUnsupported(
                f"sandbox {self._id} cannot be forked {count} times", hint="see capabilities: fork"
            )
        async with self._standing():
            return await self._copies.fork(count)

    @contextlib.asynccontextmanager
    async def _standing(self) -> AsyncIterator[None]:
        """The agent may be stopped while files are copied, which is no sign that it is dead."""
        self._copying += 1
        try:
            async with self._call():
                yield
        finally:
            self._copying -= 1

    async def alive(self) -> bool:
        """See Sandbox."""
        if self._gone is not None:
            return False
        if self._copying:
            return self._place.ended() is None
        self.probes += 1
        try:
            async with asyncio.timeout(_ALIVE_S):
                await self._client.health()
        except Exception:  # noqa: BLE001 - the contract says: never raises, whatever is wrong means not alive
            return False
        return True

    async def close(self) -> None:
        """See Sandbox."""
        await self.end(f"sandbox {self._id} was closed")

    async def end(self, reason: str) -> None:
        """Close it and let later calls say why. A cancelled caller waits for the clean-up."""
        if self._closing is None:
            self._gone = reason
            self._closing = asyncio.create_task(self._end())
        await unbroken(self._closing)

    async def release(self) -> None:
        """Let go of it without ending it: connections and tunnels close, the place stays, and this object is
        of no further use."""
        if self._closing is None:
            self._gone = f"sandbox {self._id} was released to another process"
            self._closing = asyncio.create_task(self._client.close())
        await unbroken(self._closing)

    async def _end(self) -> None:
        try:
            # The loop that opened the connections may be gone; what counts is that the sandbox goes.
            with contextlib.suppress(RuntimeError):
                await self._client.close()
        finally:
            await self._place.destroy()

    async def __aenter__(self) -> AgentSandbox:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
