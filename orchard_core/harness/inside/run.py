"""Running one program to its end."""

from __future__ import annotations

import asyncio
import contextlib
import posixpath
from collections.abc import Callable

from orchard_core.errors import FileError, SandboxError, StdinClosed
from orchard_core.harness.inside.lines import Lines
from orchard_core.harness.inside.program import InsideLimits, InsideProgram, ProgramEnd, private_home
from orchard_core.sandbox.contract import Process, Sandbox
from orchard_core.sandbox.unbroken import unbroken

OnLine = Callable[[bytes], None]
"""Takes each line of standard output as it comes, without its end. What it raises ends the program."""
_KILL_S = 10.0


async def run_inside(
    sandbox: Sandbox,
    program: InsideProgram,
    *,
    on_line: OnLine = lambda _line: None,
    limits: InsideLimits = InsideLimits(),  # noqa: B008 - frozen
) -> ProgramEnd:
    """Run a program inside the sandbox to its end, in a HOME that is made for it and removed afterwards.

    What it does wrong is told by the end, see `ProgramEnd.fault`. Raises SandboxError untouched: such as
    CommandNotFound when the sandbox lacks the program. Cancelling ends its whole tree.
    """
    home = private_home(sandbox)
    await _furnish(sandbox, home, program)
    process = await sandbox.start(
        program.argv, cwd=program.cwd, env=program.environment(home), timeout=program.timeout_s
    )
    try:
        await _feed(process, program.stdin)
        lines = Lines(line_bytes=limits.line_bytes, tail_bytes=limits.tail_bytes)
        flooded = await _read(process, lines, on_line, limits)
        end = await _ended(sandbox, program, process, lines, flooded=flooded, limits=limits)
    except BaseException:
        await unbroken(_kill(process))
        raise
    with contextlib.suppress(SandboxError):  # what is left of it harms nobody but the curious
        await sandbox.remove(home)
    return end


async def _furnish(sandbox: Sandbox, home: str, program: InsideProgram) -> None:
    await sandbox.remove(home)
    await sandbox.mkdir(home)
    for item in program.files:
        await sandbox.write(posixpath.join(home, item.path), item.content, mode=item.mode)


async def _feed(process: Process, data: bytes) -> None:
    with contextlib.suppress(StdinClosed):  # it reads none, or ended already
        if data:
            await process.write(data)
        await process.close_stdin()


async def _read(process: Process, lines: Lines, on_line: OnLine, limits: InsideLimits) -> bool:
    """Whether it wrote too much."""
    async for piece in process.stdout():
        for line in lines.feed(piece):
            on_line(line)
        if lines.size > limits.output_bytes:
            await process.kill()
            return True
    for line in lines.end():
        on_line(line)
    return False


async def _ended(
    sandbox: Sandbox,
    program: InsideProgram,
    process: Process,
    lines: Lines,
    *,
    flooded: bool,
    limits: InsideLimits,
) -> ProgramEnd:
    result = await process.wait()
    return ProgramEnd(
        program=program.name or posixpath.basename(program.argv[0]),
        exit_code=result.exit_code,
        limit_s=result.limit_s,
        flooded=flooded,
        home_lost=await _missing(sandbox, private_home(sandbox)),
        stdout_tail=lines.tail,
        stderr_tail=result.stderr[-limits.tail_bytes :],
        duration_s=result.duration_s,
    )


async def _missing(sandbox: Sandbox, path: str) -> bool:
    try:
        return (await sandbox.stat(path)).kind != "directory"
    except FileError:  # gone, or out of reach: what lies around it was changed
        return True


async def _kill(process: Process) -> None:
    with contextlib.suppress(SandboxError, TimeoutError):
        async with asyncio.timeout(_KILL_S):
            await process.kill()
