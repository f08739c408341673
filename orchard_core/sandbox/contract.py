"""What a sandbox provider gives. Every method may also raise SandboxGone and SandboxConnectionLost."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

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
    StandingSandbox,
)

Command = str | Sequence[str]
"""A shell string, or argv, which never meets a shell."""


class Process(Protocol):
    """A started command. Leaving it alone does not end it; its output waits, spooled, under a cap."""

    @property
    def id(self) -> str:
        """The client-made id; starting with the same id again attaches to this run."""

    def stdout(self) -> AsyncIterator[bytes]:
        """Pieces of standard output from the beginning until the command ends; what children that outlive
        it write later is not part of it."""

    def stderr(self) -> AsyncIterator[bytes]:
        """Pieces of standard error, likewise; empty with a PTY."""

    async def write(self, data: bytes) -> None:
        """Feed standard input. Raises ExecError when it is closed."""

    async def close_stdin(self) -> None:
        """End of file on standard input."""

    async def signal(self, number: int) -> None:
        """Send a signal to the command's process group; nothing happens when it has ended."""

    async def kill(self) -> None:
        """End the command and all its children, those that left its process group too."""

    async def resize(self, size: PtySize) -> None:
        """Resize the terminal. Raises ExecError without a PTY."""

    async def wait(self, timeout: float | None = None) -> ExecResult:
        """Wait for the end. Raises TimeoutError after `timeout` seconds; the command then lives on."""


@runtime_checkable
class Sandbox(Protocol):
    """One isolated place. Use it as an async context manager to have it closed."""

    @property
    def id(self) -> str:
        """Unique; safe as a file name."""

    @property
    def spec(self) -> SandboxSpec:
        """What it was created from."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can do."""

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
        """Run a command to its end, at most once.

        `cwd` defaults to the spec's workdir, `stdin` to /dev/null, `timeout` (seconds) to none beyond the
        sandbox's own TTL. Background children do not hold the call; a time-out ends the whole tree.
        Raises CwdMissing, CommandNotFound, NoShell, UserUnknown, ExecForgotten.
        """

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
        """Start a command and return at once. Raises as `exec`, and SandboxUnsupported for a PTY."""

    def read(self, path: str, *, offset: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        """Stream a file, or `length` bytes of it from `offset`. Raises FileMissing, IsADirectory,
        FileDenied."""

    async def read_bytes(self, path: str, *, limit: int = 64 << 20) -> bytes:
        """A whole file of at most `limit` bytes. Raises as `read`, and FileError when it is larger."""

    async def write(
        self, path: str, data: bytes | AsyncIterable[bytes], *, mode: int = 0o644, user: str | None = None
    ) -> None:
        """Write a file whole or not at all, making parents. Raises FileDenied, IsADirectory, DiskFull."""

    async def upload(self, source: Path, target: str) -> None:
        """Copy a local directory's content into `target`, made if missing. Raises ArchiveEscape."""

    async def download(self, source: str, target: Path) -> None:
        """Copy a directory's content out. What a hostile sandbox sends is checked: ArchiveEscape."""

    def read_tree(self, path: str) -> AsyncIterator[bytes]:
        """Stream a directory as an uncompressed tar, names relative to it. Raises FileMissing,
        NotADirectory. The bytes come from a hostile place: never unpack them on the host unchecked."""

    async def write_tree(self, path: str, data: AsyncIterable[bytes]) -> None:
        """Unpack a tar stream into a directory, made if missing, inside the sandbox. Raises ArchiveEscape,
        FileDenied, DiskFull."""

    async def list(self, path: str) -> builtins.list[FileEntry]:
        """Entries of a directory by name; one odd entry never breaks it. Raises FileMissing,
        NotADirectory."""

    async def stat(self, path: str) -> FileEntry:
        """One entry; links are not followed. Raises FileMissing."""

    async def mkdir(self, path: str) -> None:
        """Make a directory and its parents; fine when it exists. Raises NotADirectory, FileDenied."""

    async def remove(self, path: str) -> None:
        """Remove a file or a whole tree; fine when missing. Raises FileDenied."""

    async def forward(self, port: int) -> LocalAddress:
        """A local address whose connections reach 127.0.0.1:`port` inside, until the sandbox closes."""

    async def expose_model(self, endpoint: ModelEndpoint) -> ModelEndpoint:
        """The endpoint as seen from inside: a loopback address that leads to it and to nothing else."""

    async def endpoint(self) -> AgentEndpoint:
        """The agent's address and a scoped token, for programs in other processes or languages."""

    async def withdraw(self, endpoint: AgentEndpoint) -> None:
        """End an endpoint: its token, and with it every command still running that it started."""

    async def reset_processes(self) -> None:
        """Kill everything inside and start a new agent with a new token; the files stay as they are."""

    async def snapshot(self) -> Snapshot:
        """Save every file that was written, changed or deleted, as of one moment where the provider can stop
        what runs meanwhile. Processes, their memory and /dev/shm are not saved, and go on here.

        The snapshot outlives this sandbox; it ends by `SandboxProvider.discard` or with its provider.
        Raises SandboxUnsupported without the capability, and DiskFull, after which nothing is left.
        """

    async def fork(self, count: int) -> builtins.list[Sandbox]:
        """`count` sandboxes of the same spec that begin with this one's files, as `snapshot` saves them, and
        with nothing running. Each is its own: id, token, life span, limits, and end; the caller closes each.

        All of them or none. Raises SandboxUnsupported without the capability, ConfigError for a count below
        1, and as `snapshot` and `SandboxProvider.create`.
        """

    async def alive(self) -> bool:
        """Whether its agent answers; never raises."""

    async def close(self) -> None:
        """Destroy it; nothing is left, repeated calls are fine, and never raises."""

    async def __aenter__(self) -> Sandbox: ...

    async def __aexit__(self, *exc: object) -> None: ...


@runtime_checkable
class SandboxProvider(Protocol):
    """Makes sandboxes. One object serves many at once."""

    @property
    def name(self) -> str:
        """As the user names it."""

    async def capabilities(self) -> Capabilities:
        """What this host lets it do, probed once. Raises SandboxUnavailable when it can do nothing."""

    async def create(self, spec: SandboxSpec, *, restore: Snapshot | None = None) -> Sandbox:
        """A sandbox whose agent answers, its files written and its workdir made.

        With `restore` its files are those of the snapshot, and `spec.files` are not written again. Image and
        user must be those that were saved; all else may differ. A snapshot may be restored any number of
        times, at once too, and never changes.

        Raises SandboxUnsupported before anything starts, SandboxExists for a `spec.name` that is taken,
        SandboxUnavailable, SandboxCreateFailed; with `restore` also SnapshotMissing and DiskFull.
        """

    async def discard(self, snapshot: Snapshot) -> None:
        """Remove a snapshot; fine when it is gone. Sandboxes restored from it live on.

        Snapshots that nobody discards end with the provider: by `close`, or by a later clean-up when its
        process was killed.
        """

    async def close(self) -> None:
        """Destroy every sandbox it made that still lives, and its snapshots."""


@runtime_checkable
class AdoptingProvider(SandboxProvider, Protocol):
    """A provider whose sandboxes outlive the process that made them, and can be taken over by another."""

    async def standing(self) -> list[StandingSandbox]:
        """Every sandbox of this provider that stands, whoever made it. Raises SandboxUnavailable when that
        cannot be known: never a part of the answer."""

    async def adopt(self, sandbox_id: str, *, wanted: Callable[[SandboxSpec], bool] | None = None) -> Sandbox:
        """The sandbox of that id, made by whichever process; its commands run on. Adopting it twice gives the
        same object. One whose spec is not `wanted` is left alone, as one that does not stand. Raises
        SandboxGone when it does not stand, SandboxUnavailable, SandboxConnectionLost."""

    async def release(self) -> None:
        """Let go of everything without destroying it, for another process to adopt; `close` then does
        nothing."""
