"""One run of a program as a harness."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from orchard_core.errors import HarnessError, SandboxError, SandboxGone
from orchard_core.harness.external.environment import ExternalProgram, Place, environment, task_file
from orchard_core.harness.external.result import read_result
from orchard_core.harness.external.supervised import run_supervised
from orchard_core.sandbox.contract import Sandbox
from orchard_core.sandbox.local.removal import remove_tree
from orchard_core.sandbox.unbroken import unbroken
from orchard_core.tasks.contract import Tool
from orchard_core.types.harness import HarnessResult, Limits, StopReason
from orchard_core.types.model import ModelEndpoint
from orchard_core.types.sandbox import AgentEndpoint
from orchard_core.types.task import Task


async def run_external(
    program: ExternalProgram,
    *,
    task: Task,
    sandbox: Sandbox,
    model: ModelEndpoint,
    tools: Sequence[Tool],
    limits: Limits,
) -> HarnessResult:
    """Run a program beside the driver under the contract of docs/how-to/harness-in-any-language.md.

    Raises HarnessCrashed when it ends without a result, HarnessError when that cannot be read, SandboxGone
    when the sandbox died under it. Whatever happens, no process of it is left, nor any command that it
    started in the sandbox, nor its private directory.
    """
    agent = await sandbox.endpoint()
    try:
        result = await _run(program, task, sandbox, agent, model, tools, limits)
    except HarnessError as error:
        await _check_alive(sandbox, error)
        raise
    finally:
        with contextlib.suppress(SandboxError):
            await unbroken(sandbox.withdraw(agent))
    if result.stop is StopReason.ERROR:
        await _check_alive(sandbox, None)
    return result


async def _run(
    program: ExternalProgram,
    task: Task,
    sandbox: Sandbox,
    agent: AgentEndpoint,
    model: ModelEndpoint,
    tools: Sequence[Tool],
    limits: Limits,
) -> HarnessResult:
    workdir = task.workdir if sandbox.capabilities.private_paths else sandbox.spec.workdir
    given = task_file(program, task, workdir, tools, limits)
    with _private_place() as place:
        place.furnish(given)
        variables = environment(program, place, given, agent, model)
        ended = await run_supervised(program.argv, directory=place.root, cwd=place.work, env=variables)
        secrets = (model.api_key, agent.token)
        return await asyncio.to_thread(read_result, Path(program.argv[0]).name, place, ended, secrets)


@contextlib.contextmanager
def _private_place() -> Iterator[Place]:
    root = Path(tempfile.mkdtemp(prefix="orchard-harness-"))
    try:
        yield Place(root=root)
    finally:
        remove_tree(root)


async def _check_alive(sandbox: Sandbox, cause: Exception | None) -> None:
    """A program that fails because its sandbox died is not to blame. Raises SandboxGone."""
    if not await sandbox.alive():
        raise SandboxGone(f"sandbox {sandbox.id} died under its harness") from cause
