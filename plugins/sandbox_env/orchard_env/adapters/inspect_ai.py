"""Inspect's sandboxes from a service: `sandbox="orchard"`."""

from __future__ import annotations

import contextlib
import posixpath
import sys
from typing import Any, Literal, overload

from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxEnvironment,
    SandboxEnvironmentLimits,
    SandboxUnavailableError,
    SandboxUserUnsupportedError,
    sandboxenv,
)
from pydantic import BaseModel

from orchard_core import (
    AgentRefused,
    CommandNotFound,
    ExecError,
    FileDenied,
    FileEntry,
    FileMissing,
    NotADirectory,
    Sandbox,
    SandboxConnectionLost,
    SandboxGone,
    SandboxUnavailable,
    UserUnknown,
    unbroken,
)
from orchard_core import ExecResult as Ended
from orchard_env.adapters.inspect_config import CONFIG_FILES, OrchardSpec, spec_of
from orchard_env.adapters.wanted import as_os_errors, delete_made_by, provider_for
from orchard_env.remote.provider import RemoteProvider

_AWAY = (SandboxGone, SandboxConnectionLost, SandboxUnavailable, AgentRefused)


@sandboxenv(name="orchard")
class OrchardSandboxEnvironment(SandboxEnvironment):
    """One sandbox of a service. A sample has one, by the name `default`."""

    def __init__(self, provider: RemoteProvider, sandbox: Sandbox) -> None:
        """Made by `sample_init`."""
        super().__init__()
        self.provider = provider
        """Of this sample alone: it ends with it."""
        self.sandbox = sandbox
        """What runs the commands."""

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,  # noqa: A002 - Inspect's name
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        """See Inspect. A command runs once: one that was out of time is not tried again. Raises TimeoutError,
        OutputLimitExceededError, PermissionError, SandboxUserUnsupportedError, SandboxUnavailableError."""
        given = input.encode() if isinstance(input, str) else input
        try:
            ended = await self.sandbox.exec(
                cmd, cwd=self._path(cwd or ""), env=env, stdin=given, timeout=timeout, user=user
            )
        except ExecError as error:
            if isinstance(error, UserUnknown) and not self.sandbox.capabilities.users:
                raise SandboxUserUnsupportedError(str(error)) from error
            missing = isinstance(error, CommandNotFound)
            if missing and "/" in cmd[0] and await self._entry(cmd[0]) is not None:
                raise PermissionError(str(error)) from error
            return ExecResult(False, 127 if missing else 126, "", str(error))
        except _AWAY as error:
            raise SandboxUnavailableError(str(error)) from error
        if ended.timed_out:
            raise TimeoutError(f"the command ran longer than {timeout} s, and was ended")
        _check_output(ended)
        return ExecResult(ended.exit_code == 0, ended.exit_code, ended.stdout_text, ended.stderr_text)

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """See Inspect. A file that is there keeps its mode. Raises PermissionError, IsADirectoryError."""
        content = contents.encode() if isinstance(contents, str) else contents
        with as_os_errors(file):
            there = await self._entry(file, 0o222)
            mode = there.mode if there is not None and there.kind == "file" else 0o644
            await self.sandbox.write(self._path(file), content, mode=mode)

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        """See Inspect: never more than its limit is read. Raises FileNotFoundError, PermissionError,
        IsADirectoryError, UnicodeDecodeError, OutputLimitExceededError."""
        content = bytearray()
        with as_os_errors(file):
            await self._entry(file, 0o444)
            async with contextlib.aclosing(self.sandbox.read(self._path(file))) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    content += piece
                    if len(content) > SandboxEnvironmentLimits.MAX_READ_FILE_SIZE:
                        raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, None)
        return content.decode() if text else bytes(content)

    def default_polling_interval(self) -> float:
        """See Inspect: a call costs milliseconds."""
        return 0.5

    @classmethod
    async def task_init(cls, task_name: str, config: BaseModel | str | None) -> None:
        """See Inspect. Raises ConfigError and SandboxUnavailable before any sample has begun."""
        provider = provider_for("inspect")
        try:
            await provider.capabilities()
            await spec_of(provider, config)
        finally:
            await unbroken(provider.close())

    @classmethod
    async def sample_init(
        cls, task_name: str, config: BaseModel | str | None, metadata: dict[str, str]
    ) -> dict[str, SandboxEnvironment]:
        """See Inspect. Nothing is left behind when it is cancelled."""
        provider = provider_for("inspect")
        try:
            sandbox = await provider.create(await spec_of(provider, config))
        except BaseException:
            await unbroken(provider.close())
            raise
        return {"default": cls(provider, sandbox)}

    @classmethod
    async def sample_cleanup(
        cls,
        task_name: str,
        config: BaseModel | str | None,
        environments: dict[str, SandboxEnvironment],
        interrupted: bool,
    ) -> None:
        """See Inspect; an interrupted sample's sandbox goes at once, too."""
        for environment in environments.values():
            await unbroken(environment.as_type(cls).provider.close())

    @classmethod
    async def cli_cleanup(cls, id: str | None) -> None:  # noqa: A002 - Inspect's name
        """See Inspect: of this key's sandboxes those that Inspect made, or one of them."""
        found = await delete_made_by("inspect", id)
        sys.stdout.write("".join(f"deleted {one}\n" for one in found) or "no sandbox of Inspect's stands\n")

    @classmethod
    def config_files(cls) -> list[str]:
        """See Inspect. A Dockerfile is found to be refused, not to be passed over."""
        return list(CONFIG_FILES)

    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> BaseModel:
        """See Inspect."""
        return OrchardSpec.model_validate(config)

    def _path(self, path: str) -> str:
        return posixpath.normpath(posixpath.join(self.sandbox.spec.workdir, path))

    async def _entry(self, path: str, use: int = 0) -> FileEntry | None:
        """What is there, if anything. Raises FileDenied where the mode grants nobody such use: the agent may
        do more than the sandbox's user, for whom it acts."""
        try:
            entry = await self.sandbox.stat(self._path(path))
        except (FileMissing, NotADirectory):
            return None
        if use and not entry.mode & use:
            raise FileDenied(f"its mode is {entry.mode:o}")
        return entry


def _check_output(ended: Ended) -> None:
    limit = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE
    for size, data in ((ended.stdout_size, ended.stdout), (ended.stderr_size, ended.stderr)):
        if size > min(limit, len(data)):
            said = data[:limit].decode("utf-8", "replace")
            raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR, said)
