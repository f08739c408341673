"""The async client of the in-sandbox agent. docs/reference/agent-protocol.md has the protocol."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterable, Mapping
from dataclasses import replace
from typing import Any, Literal

from orchard_core.errors import AgentRefused, SandboxConnectionLost, SandboxError
from orchard_core.sandbox.agent import read, spec
from orchard_core.sandbox.agent.changes import AgentChanges
from orchard_core.sandbox.agent.files import AgentFiles
from orchard_core.sandbox.agent.forward import Forward
from orchard_core.sandbox.agent.health import AgentHealth, AgentMetrics
from orchard_core.sandbox.agent.link import CALL_S, AgentLink
from orchard_core.sandbox.agent.process import WAIT_S, AgentProcess
from orchard_core.sandbox.agent.runs import AgentRuns
from orchard_core.sandbox.agent.terminal import AgentTerminal, open_terminal
from orchard_core.sandbox.agent.told import RunTold, outcome, told
from orchard_core.sandbox.agent.trees import AgentTrees
from orchard_core.sandbox.agent.tunnel import Tunnel
from orchard_core.sandbox.agent.understood import understood
from orchard_core.sandbox.agent.wire import ANSWER_MAX
from orchard_core.sandbox.contract import Command
from orchard_core.sandbox.unbroken import unbroken
from orchard_core.types.sandbox import AgentEndpoint, ExecResult, LocalAddress, PtySize

_CLEAN_UP_S = 8.0
_READY_PAUSE_S = 0.002


class AgentClient(AgentFiles, AgentTrees, AgentRuns, AgentChanges):
    """One agent. Calls may run at the same time; each method raises SandboxGone, SandboxConnectionLost and
    AgentRefused besides what it says."""

    def __init__(self, endpoint: AgentEndpoint, *, through: AgentEndpoint | None = None) -> None:
        """`through` is a second way to the same agent; see AgentLink."""
        super().__init__(AgentLink(endpoint, through=through))
        self._forwards: list[Forward] = []
        self._tunnels: list[Tunnel] = []
        self._closed = False

    @property
    def endpoint(self) -> AgentEndpoint:
        """What it was made from. It holds the root token: give others what `mint_token` returns."""
        return self._link.endpoint

    @property
    def link(self) -> AgentLink:
        """The calls below this client's, with its token."""
        return self._link

    async def __aenter__(self) -> AgentClient:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Drop tunnels, forwards and connections; the agent lives on. No other can be had after it."""
        self._closed = True
        for tunnel in self._tunnels:
            await tunnel.close()
        for forward in self._forwards:
            await forward.close()
        await self._link.close()

    async def wait_ready(self, timeout: float = 10.0) -> AgentHealth:
        """Until the agent answers. Raises TimeoutError, or AgentRefused at once."""
        pause = _READY_PAUSE_S
        async with asyncio.timeout(timeout):
            while True:
                try:
                    return await self.health()
                except AgentRefused:
                    raise
                except SandboxError:
                    pass  # not there yet
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, 0.1)

    async def exec(
        self,
        command: Command,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | AsyncIterable[bytes] | None = None,
        timeout: float | None = None,
        user: str | None = None,
        output_limit: int | None = None,
        run_id: str | None = None,
        lane: str | None = None,
    ) -> ExecResult:
        """Run a command to its end, at most once, whatever happens to the connection.

        `output_limit` is how many bytes of each stream are kept (16 MiB, half head and half tail). A repeated
        `run_id` with the same command gives the result of the run that has it. Cancelling ends the command.
        Commands of one `lane` run one after the other, in the order of their arrival; a time-out counts from
        the command's own start.
        Raises CwdMissing, CommandNotFound, NoShell, UserUnknown, ExecForgotten, ExecError, ServiceOverloaded
        (too many wait).
        """
        run_id = run_id or new_run_id()
        inline = stdin if isinstance(stdin, bytes) and len(stdin) <= spec.INLINE_STDIN else None
        streamed = stdin is not None and inline is None
        body = spec.frame(
            run_id,
            command,
            cwd=cwd,
            env=env,
            timeout=timeout,
            user=user,
            stdin="stream" if streamed else "inline" if inline else "",
            output_limit=output_limit,
            lane=lane,
            inline=inline or b"",
        )
        answer_max = _answer_max(output_limit)
        process = AgentProcess(self._link, run_id, answer_max=answer_max)
        try:
            status, output = await self._post(body, 0.0 if streamed else WAIT_S, answer_max)
            ended = outcome(status, output)
            if ended is not None:
                return ended
            if streamed and stdin is not None:
                return await self._fed(process, stdin)
            return await process.wait()
        except asyncio.CancelledError:
            await unbroken(_give_up(process))
            raise

    async def _fed(self, process: AgentProcess, stdin: bytes | AsyncIterable[bytes]) -> ExecResult:
        feeding = asyncio.create_task(process.feed(stdin))
        waiting = asyncio.create_task(process.wait())
        try:
            await asyncio.wait((feeding, waiting), return_when=asyncio.FIRST_COMPLETED)
            if feeding.done() and feeding.exception() is not None:
                await _give_up(process)
                await feeding
            return await waiting
        finally:
            feeding.cancel()
            waiting.cancel()
            await asyncio.gather(feeding, waiting, return_exceptions=True)

    async def start(
        self,
        command: Command,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        user: str | None = None,
        stdin: bool = True,
        output_limit: int | None = None,
        run_id: str | None = None,
        lane: str | None = None,
        pty: PtySize | None = None,
    ) -> AgentProcess:
        """Start a command and return at once; `stdin=False` gives it /dev/null. With `pty` a terminal of that
        size is its input and both its outputs, which come as one, stdout; nothing ends the command but
        itself, its time-out, or who tells it to. Raises as `exec`; SandboxUnsupported where there are no
        terminals.
        """
        run_id = run_id or new_run_id()
        body = spec.frame(
            run_id,
            command,
            cwd=cwd,
            env=env,
            timeout=timeout,
            user=user,
            stdin="stream" if stdin else "",
            output_limit=output_limit,
            lane=lane,
            pty=pty,
        )
        await self._post(body, 0.0)
        return AgentProcess(self._link, run_id, answer_max=_answer_max(output_limit))

    async def begin(
        self,
        command: Command,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        user: str | None = None,
        stdin: bytes | Literal["stream"] = b"",
        output_limit: int | None = None,
        run_id: str | None = None,
        lane: str | None = None,
        note: str | None = None,
        wait_s: float = 0.0,
    ) -> RunTold:
        """Start a command and tell how it stands after at most `wait_s` seconds (60 at most). It is left to
        itself: cancelling this call does not end it. Its input is /dev/null, or the bytes of `stdin` (1 MiB
        at most), or what its process is fed later. `note`, of 8 KiB at most, is told again with the run, to
        whoever asks. Raises as `exec`."""
        body = spec.frame(
            run_id or new_run_id(),
            command,
            cwd=cwd,
            env=env,
            timeout=timeout,
            user=user,
            stdin="stream" if stdin == "stream" else "inline" if stdin else "",
            output_limit=output_limit,
            lane=lane,
            note=note,
            inline=b"" if stdin == "stream" else stdin,
        )
        return told(*await self._post(body, wait_s, _answer_max(output_limit)))

    def process(self, run_id: str) -> AgentProcess:
        """The run with this id, without asking whether there is one: its methods say so."""
        return AgentProcess(self._link, run_id)

    async def attach(self, run_id: str) -> AgentProcess:
        """The run with this id. Raises ExecError when there is none, ExecForgotten when it is long over."""
        process = AgentProcess(self._link, run_id)
        await process.status()
        return process

    async def terminal(
        self, run_id: str, *, cursor: int = 0, hang_up: bool = False, grace_s: int = 2
    ) -> AgentTerminal:
        """Join the terminal of a run that was started with `pty`: its output from `cursor` on, and keys. With
        `hang_up` the command is ended when this connection is: see `AgentProcess.hang_up`. Raises ExecError
        when there is no such run, or no terminal."""
        return await open_terminal(self._link, run_id, cursor=cursor, hang_up=hang_up, grace_s=grace_s)

    async def _post(
        self, body: bytes, wait_s: float, answer_max: int = ANSWER_MAX
    ) -> tuple[dict[str, Any], bytes]:
        """Sending it again is safe: the id in it attaches to the run."""
        _, said = await self._link.call(
            "POST",
            "/v1/exec",
            {"wait": wait_s},
            body,
            repeat=True,
            patience=wait_s + CALL_S,
            limit=answer_max,
        )
        return spec.parse(said)

    async def own_address(self) -> LocalAddress:
        """A local address that leads to the agent itself, through the service before it, until the client is
        closed: for programs that hold a token and know nothing of services."""
        return await self._opened(Forward(self._link, None))

    async def forward(self, port: int) -> LocalAddress:
        """A local address that leads to the port inside, until the client is closed."""
        return await self._opened(Forward(self._link, port))

    async def _opened(self, forward: Forward) -> LocalAddress:
        self._must_be_open()
        self._forwards.append(forward)
        address = await forward.open()
        if self._closed:  # meanwhile, and `close` found nothing to close yet
            await forward.close()
            self._must_be_open()
        return address

    async def tunnel(self, target: LocalAddress | str, *, listen: str = "127.0.0.1:0") -> Tunnel:
        """An address inside that leads to `target`, a TCP address or the path of a Unix socket out here."""
        self._must_be_open()
        tunnel = Tunnel(self._link, target)
        await tunnel.open(listen)
        if self._closed:  # meanwhile: left open it would hold its port inside against the next driver
            await tunnel.close()
            self._must_be_open()
        self._tunnels.append(tunnel)
        return tunnel

    def _must_be_open(self) -> None:
        if self._closed:
            raise SandboxConnectionLost(f"the client of sandbox {self.endpoint.sandbox_id} is closed")

    async def health(self) -> AgentHealth:
        """Whether, and for how long, the agent serves."""
        said = await self._link.ask("GET", "/v1/health")
        with understood():
            return AgentHealth.of(said)

    async def metrics(self) -> AgentMetrics:
        """What the agent uses and holds."""
        said = await self._link.ask("GET", "/v1/metrics", repeat=True)
        with understood():
            return AgentMetrics.of(said)

    async def kill_all(self) -> None:
        """End every process inside but the agent; they are gone when it returns."""
        await self._link.call("POST", "/v1/kill", repeat=True)

    async def mint_token(self, ttl_s: float | None = None) -> AgentEndpoint:
        """An endpoint whose token may use commands and files only, for `ttl_s` seconds or for good."""
        query = {"ttl": None if ttl_s is None else max(1, int(ttl_s))}
        said = await self._link.ask("POST", "/v1/tokens", query)
        with understood():
            return replace(self.endpoint, token=read.text(said["token"]))

    async def revoke_token(self, token: str) -> None:
        """End a token that was minted, and the commands that were started with it."""
        await self._link.call("DELETE", "/v1/tokens", body=token.encode(), repeat=True)

    async def shutdown(self) -> None:
        """End everything inside, and the agent; fine when it is gone already."""
        with contextlib.suppress(SandboxError):
            await self._link.call("POST", "/v1/shutdown")


def new_run_id() -> str:
    """An id that nobody else makes."""
    return uuid.uuid4().hex


def _answer_max(output_limit: int | None) -> int:
    """Bytes of an answer about a run: how it stands, and what is kept of either output."""
    return ANSWER_MAX if output_limit is None else spec.STATUS_MAX + 2 * output_limit


async def _give_up(process: AgentProcess) -> None:
    """End a command that nobody waits for any more, within a bound."""
    with contextlib.suppress(SandboxError, TimeoutError):
        async with asyncio.timeout(_CLEAN_UP_S):
            await process.kill()
