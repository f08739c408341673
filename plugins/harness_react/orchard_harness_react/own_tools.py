"""The harness's own tools: a shell, files, and the end."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from orchard_core import ExecError, ExecResult, FileError, Sandbox, Tool, ToolResult, ToolSpec
from orchard_harness_react.config import OwnTool, ReactConfig
from orchard_harness_react.content import cut
from orchard_harness_react.files import Files, Refused
from orchard_harness_react.own_specs import own_spec

Arguments = Mapping[str, JsonValue]
Act = Callable[[Arguments], Awaitable[ToolResult]]

_NOTES = 300
"""Characters kept free for what is said about a command's output."""


@dataclass(frozen=True, slots=True)
class OwnTools:
    """What they do. The arguments fit the schemas already."""

    config: ReactConfig
    """Limits."""
    sandbox: Sandbox
    """Where they act."""
    workdir: str
    """Where commands start and relative paths begin."""

    async def bash(self, args: Arguments) -> ToolResult:
        """Run a command."""
        config, command = self.config, str(args["command"])
        if "\0" in command:
            raise Refused("A command cannot hold a NUL character. Write it as an escape, as in printf '\\0'.")
        asked = args.get("timeout_s", config.bash_timeout_s)
        limit = min(float(asked) if isinstance(asked, (int, float)) else 0.0, config.bash_timeout_max_s)
        if limit <= 0:
            return ToolResult.text("timeout_s must be above 0.", is_error=True)
        done = await self.sandbox.exec(command, cwd=self.workdir, timeout=limit)
        return ToolResult.text(_told(done, config.observation_limit), is_error=not done.ok)

    async def read_file(self, args: Arguments) -> ToolResult:
        """Show a file, or some lines of it."""
        first, count = _whole(args.get("first_line")), _whole(args.get("lines"))
        limit = self.config.observation_limit
        if first is None and count is None:
            return ToolResult.text(await self._files.whole(self._path(args), limit))
        return ToolResult.text(await self._files.lines(self._path(args), first or 1, count, limit))

    async def write_file(self, args: Arguments) -> ToolResult:
        """Write a whole file."""
        return ToolResult.text(await self._files.write(self._path(args), str(args["content"])))

    async def edit_file(self, args: Arguments) -> ToolResult:
        """Replace a piece of a file."""
        told = await self._files.edit(
            self._path(args), old=str(args["old"]), new=str(args["new"]), everywhere=args.get("all") is True
        )
        return ToolResult.text(told)

    async def submit(self, args: Arguments) -> ToolResult:
        """End the episode."""
        answer = args.get("answer")
        return ToolResult(ends=True, answer=answer if isinstance(answer, str) else None)

    @property
    def _files(self) -> Files:
        return Files(sandbox=self.sandbox)

    def _path(self, args: Arguments) -> str:
        path = str(args["path"])
        if not path or "\0" in path:
            raise Refused(f"{path!r} is no path.")
        return posixpath.normpath(posixpath.join(self.workdir, path))


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnToolOffer:
    """One of them, as the contract wants a tool."""

    spec: ToolSpec
    """What the model sees."""
    act: Act
    """What it does."""
    limit_s: float | None
    """Given up after so many seconds, as a file of /proc may never end; None: it sees to that itself."""

    @property
    def name(self) -> str:
        """See Tool."""
        return self.spec.name

    @property
    def description(self) -> str:
        """See Tool."""
        return self.spec.description

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        """See Tool."""
        return self.spec.parameters

    async def call(self, args: Arguments) -> ToolResult:
        """Mistakes with commands and files are told to the model; raises when the sandbox itself fails."""
        try:
            async with asyncio.timeout(self.limit_s) as clock:
                return await self.act(args)
        except (ExecError, FileError, Refused) as error:
            return ToolResult.text(str(error), is_error=True)
        except TimeoutError:
            if not clock.expired():
                raise
            return ToolResult.text(f"{self.name} was given up after {self.limit_s:g} s.", is_error=True)


def own_tools(config: ReactConfig, sandbox: Sandbox, workdir: str) -> list[Tool]:
    """Those that the config turns on."""
    tools = OwnTools(config, sandbox, workdir)
    acts: Mapping[OwnTool, Act] = {
        "bash": tools.bash,
        "read_file": tools.read_file,
        "write_file": tools.write_file,
        "edit_file": tools.edit_file,
        "submit": tools.submit,
    }
    return [
        OwnToolOffer(
            spec=own_spec(name, config, workdir),
            act=acts[name],
            limit_s=None if name == "bash" else config.bash_timeout_s,
        )
        for name in dict.fromkeys(config.tools)
    ]


def _whole(number: JsonValue) -> int | None:
    """A whole number, which JSON may write as 5 or 5.0."""
    return int(number) if isinstance(number, int | float) else None


def _told(done: ExecResult, limit: int) -> str:
    """Output and end of a command; standard error has half the room when there is both."""
    room = limit - _NOTES
    err = cut(done.stderr_text, room // 2 if done.stdout else room, _size(done.stderr_size))
    out = cut(done.stdout_text, room - len(err), _size(done.stdout_size))
    parts = [out.rstrip("\n")] if out else []
    parts += [f"[stderr]\n{err}".rstrip("\n")] if err else []
    return "\n".join([*(parts or ["(no output)"]), *_notes(done)])


def _notes(done: ExecResult) -> list[str]:
    streams = (
        ("stdout", done.stdout_truncated, done.stdout_size),
        ("stderr", done.stderr_truncated, done.stderr_size),
    )
    notes = [
        f"[{name} lacks its middle: {_size(size)} in all; redirect it to a file to see the rest]"
        for name, truncated, size in streams
        if truncated
    ]
    if done.timed_out:
        return [*notes, f"[timed out: killed after {done.limit_s or 0:g} s with everything it had started]"]
    return [*notes, f"[exit code {done.exit_code}]"]


def _size(count: int) -> str:
    return f"{count:,} bytes"
