"""A sandbox without isolation: plain subprocesses in a directory of this host."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import re
import shutil
import time
import uuid
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import ClassVar

from orchard_core.errors import (
    CommandNotFound,
    CwdMissing,
    ExecError,
    FileError,
    SandboxGone,
    SandboxUnsupported,
    UserUnknown,
)
from orchard_core.sandbox.contract import Command, Sandbox
from orchard_core.sandbox.forking import check_count, make_all
from orchard_core.testing.fakes.files import FakeFiles, unpack_checked
from orchard_core.testing.fakes.process import FakeProcess, end_marked
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

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class FakeSandbox:
    """Honours `orchard_core.Sandbox` without an agent. Made by `FakeProvider.create`.

    Absolute paths of the file methods lie under a private directory. In shell strings (not in argv, nor in
    scripts' own files) a path whose first part this sandbox holds, such as `/workspace/x`, is rewritten to
    where it really lies; any other path is the host's.
    """

    process_type: ClassVar[type[FakeProcess]] = FakeProcess
    """What `start` gives."""

    def __init__(
        self, base: Path, spec: SandboxSpec, capabilities: Capabilities, *, copier: Copier, output_limit: int
    ) -> None:
        self._base = base
        self._spec = spec
        self._capabilities = capabilities
        self._copier = copier
        self._output_limit = output_limit
        self._files = FakeFiles(base / "root")
        self.marker = f"ORCHARD_FAKE_SANDBOX={base}"
        """What the environment of every process in it carries."""
        self._closed = False
        self._used = time.monotonic()
        self._reaper = asyncio.create_task(self._expire())
        self.commands: builtins.list[Command] = []
        """Every command given to `exec` or `start`, for assertions."""

    @property
    def id(self) -> str:
        """See Sandbox."""
        return self._base.name

    @property
    def spec(self) -> SandboxSpec:
        """See Sandbox."""
        return self._spec

    @property
    def capabilities(self) -> Capabilities:
        """See Sandbox."""
        return self._capabilities

    @property
    def root(self) -> Path:
        """The directory that stands for `/`."""
        return self._files.root

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
        process = await self._spawn(command, cwd, env, timeout, user, fed=stdin is not None)
        feeder = asyncio.create_task(_feed(process, stdin)) if stdin is not None else None
        try:
            return await process.wait()
        except asyncio.CancelledError:
            await process.kill()
            raise
        finally:
            if feeder is not None:
                feeder.cancel()
                await asyncio.gather(feeder, return_exceptions=True)

    async def start(
        self,
        command: Command,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        user: str | None = None,
        pty: PtySize | None = None,
    ) -> FakeProcess:
        """See Sandbox."""
        if pty is not None:
            raise SandboxUnsupported("a fake sandbox has no terminals", hint="use a real provider")
        return await self._spawn(command, cwd, env, timeout, user, fed=True)

    def read(self, path: str, *, offset: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        """See Sandbox."""
        return self._touch().read(path, offset, length)

    async def read_bytes(self, path: str, *, limit: int = 64 << 20) -> bytes:
        """See Sandbox."""
        data = b"".join([piece async for piece in self.read(path, length=limit + 1)])
        if len(data) > limit:
            raise FileError(f"{path!r} is larger than {limit} bytes", hint="stream it with read()")
        return data

    async def write(
        self, path: str, data: bytes | AsyncIterable[bytes], *, mode: int = 0o644, user: str | None = None
    ) -> None:
        """See Sandbox."""
        _own_user_only(user)
        await self._touch().write(path, data, mode)

    async def upload(self, source: Path, target: str) -> None:
        """See Sandbox."""
        await self.write_tree(target, FakeFiles(source.resolve()).pack("/"))

    async def download(self, source: str, target: Path) -> None:
        """See Sandbox."""
        await FakeFiles(target.resolve()).unpack("/", self.read_tree(source))

    def read_tree(self, path: str) -> AsyncIterator[bytes]:
        """See Sandbox."""
        return self._touch().pack(path)

    async def write_tree(self, path: str, data: AsyncIterable[bytes]) -> None:
        """See Sandbox."""
        await self._touch().unpack(path, data)

    async def list(self, path: str) -> builtins.list[FileEntry]:
        """See Sandbox."""
        return self._touch().entries(path)

    async def stat(self, path: str) -> FileEntry:
        """See Sandbox."""
        return self._touch().entry(path)

    async def mkdir(self, path: str) -> None:
        """See Sandbox."""
        self._touch().mkdir(path)

    async def remove(self, path: str) -> None:
        """See Sandbox."""
        self._touch().remove(path)

    async def forward(self, port: int) -> LocalAddress:
        """See Sandbox; inside and outside share one loopback."""
        self._touch()
        return LocalAddress(host="127.0.0.1", port=port)

    async def expose_model(self, endpoint: ModelEndpoint) -> ModelEndpoint:
        """See Sandbox; inside and outside share one loopback."""
        self._touch()
        return endpoint

    async def endpoint(self) -> AgentEndpoint:
        """Raises SandboxUnsupported: there is no agent."""
        raise SandboxUnsupported("a fake sandbox runs no agent", hint="use the process provider")

    async def withdraw(self, endpoint: AgentEndpoint) -> None:
        """Raises SandboxUnsupported: it gives no endpoints."""
        raise SandboxUnsupported("a fake sandbox runs no agent", hint="use the process provider")

    async def reset_processes(self) -> None:
        """See Sandbox."""
        self._touch()
        await end_marked(self.marker)

    async def snapshot(self) -> Snapshot:
        """See Sandbox."""
        self._touch()
        return await self._copier.save(self)

    async def fork(self, count: int) -> builtins.list[Sandbox]:
        """See Sandbox."""
        check_count(count)
        saved = await self.snapshot()
        spec = self._spec.model_copy(update={"name": None})
        try:
            made = await make_all(lambda: self._copier.create(spec, restore=saved), count)
            return builtins.list[Sandbox](made)
        finally:
            await self._copier.discard(saved)

    async def alive(self) -> bool:
        """See Sandbox."""
        return not self._closed

    async def close(self) -> None:
        """See Sandbox."""
        if self._closed:
            return
        self._closed = True
        if self._reaper is not asyncio.current_task():
            self._reaper.cancel()
        await end_marked(self.marker)
        shutil.rmtree(self._base, ignore_errors=True)

    async def __aenter__(self) -> FakeSandbox:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def _touch(self) -> FakeFiles:
        if self._closed:
            raise SandboxGone(f"sandbox {self.id} is closed", hint="create a new one")
        self._used = time.monotonic()
        return self._files

    async def _expire(self) -> None:
        born = time.monotonic()
        while True:
            idle = self._spec.idle_ttl_s
            ends = born + self._spec.ttl_s
            if idle is not None:
                ends = min(ends, self._used + idle)
            if (left := ends - time.monotonic()) <= 0:
                break
            await asyncio.sleep(left)
        await self.close()

    async def _spawn(
        self,
        command: Command,
        cwd: str | None,
        env: Mapping[str, str] | None,
        timeout: float | None,
        user: str | None,
        *,
        fed: bool,
    ) -> FakeProcess:
        _own_user_only(user)
        where = self._touch().host(cwd or self._spec.workdir)
        if not where.is_dir():
            raise CwdMissing(f"the working directory {cwd!r} does not exist", hint="make it first")
        self.commands.append(command)
        spool = self._base / "runs" / uuid.uuid4().hex
        spool.mkdir(parents=True)
        argv = self._argv(command, spool)
        marker = f"ORCHARD_FAKE_RUN={spool.name}"
        with (spool / "stdout").open("wb") as out, (spool / "stderr").open("wb") as err:
            try:
                child = await asyncio.create_subprocess_exec(
                    *argv,
                    cwd=where,
                    env=self._env(env, marker),
                    stdin=asyncio.subprocess.PIPE if fed else asyncio.subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                )
            except (FileNotFoundError, PermissionError) as error:
                raise CommandNotFound(f"{argv[0]!r} does not exist or may not be run") from error
            except (OSError, ValueError) as error:
                raise ExecError(f"{argv[0]!r} could not be started: {error}") from error
        return self.process_type(
            child, marker=marker, spool=spool, timeout=timeout, output_limit=self._output_limit
        )

    def _argv(self, command: Command, spool: Path) -> builtins.list[str]:
        if not isinstance(command, str):
            return builtins.list(command)
        script = spool / "script"
        script.write_bytes(self._localised(command).encode("utf-8", "surrogateescape"))
        return ["/bin/sh", str(script)]

    def _localised(self, text: str) -> str:
        names = "|".join(re.escape(entry.name) for entry in self.root.iterdir())
        if not names:
            return text
        pattern = rf"(?<![\w./-])(?=/(?:{names})(?:$|[^\w.-]))"
        return re.sub(pattern, lambda _: str(self.root), text)

    def _env(self, env: Mapping[str, str] | None, marker: str) -> dict[str, str]:
        base = {"PATH": _PATH, "HOME": str(self._base / "home"), "TMPDIR": str(self._base / "tmp")}
        marks = dict(item.split("=", 1) for item in (self.marker, marker))
        return {**base, "LANG": "C.UTF-8", **self._spec.env, **(env or {}), **marks}


class Copier:
    """What a fake sandbox needs of its provider, which may be replaced."""

    def __init__(
        self,
        save: Callable[[FakeSandbox], Awaitable[Snapshot]],
        create: Callable[..., Awaitable[FakeSandbox]],
        discard: Callable[[Snapshot], Awaitable[None]],
    ) -> None:
        self.save = save
        self.create = create
        self.discard = discard


def _own_user_only(user: str | None) -> None:
    if user is not None:
        raise UserUnknown(f"a fake sandbox cannot switch to user {user!r}", hint="leave `user` out")


async def _feed(process: FakeProcess, stdin: bytes | AsyncIterable[bytes] | None) -> None:
    with contextlib.suppress(ExecError):  # the command may end without reading it all
        if isinstance(stdin, bytes):
            await process.write(stdin)
        elif stdin is not None:
            async for piece in stdin:
                await process.write(piece)
    await process.close_stdin()


__all__ = ["Copier", "FakeSandbox", "unpack_checked"]
