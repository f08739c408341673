"""Making a sandbox ready for a task.

Nothing of a task runs on this machine: its files are uploaded and its set-up script runs inside, in a
directory that is gone before the agent starts.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from orchard_core.errors import TaskInvalid
from orchard_core.reward.script import cut
from orchard_core.sandbox.contract import Sandbox
from orchard_core.tasks.contract import Tool
from orchard_core.tasks.harbor.read import HarborTask

STAGE = "/tmp/orchard-environment"  # noqa: S108 - a path inside the sandbox, before anything else runs there
"""Where the task's environment directory lies inside while its set-up script runs."""


@asynccontextmanager
async def prepared(task: HarborTask, sandbox: Sandbox) -> AsyncIterator[Sequence[Tool]]:
    """Put the task's files in place and run its set-up script. Raises TaskInvalid when that fails."""
    await _put_files(task, sandbox)
    setup = task.root / task.toml.orchard.setup
    if setup.is_file():
        await _set_up(task, sandbox, setup)
    yield ()


async def _put_files(task: HarborTask, sandbox: Sandbox) -> None:
    workdir, environment = task.task.workdir, task.root / "environment"
    named = task.toml.orchard.files
    if named == "":
        return
    if named is not None and not (task.root / named).is_dir():
        raise TaskInvalid(f"{task.task.id} has no directory {named}, which its [orchard] table names")
    files = task.root / (named or "environment/files")
    if files.is_dir():
        await sandbox.upload(files, workdir)
    elif task.spec.image.kind == "host" and environment.is_dir():
        await sandbox.upload(environment, workdir)
        if (environment / "setup.sh").exists():
            await sandbox.remove(f"{workdir}/setup.sh")


async def _set_up(task: HarborTask, sandbox: Sandbox, setup: Path) -> None:
    directory = setup.parent
    script = f"{STAGE}/{setup.name}"
    text = setup.read_bytes().replace(b"\r\n", b"\n")
    await sandbox.upload(directory, STAGE)
    await sandbox.write(script, text, mode=0o755)
    try:
        result = await sandbox.exec(
            [script] if text.startswith(b"#!") else ["/bin/sh", script],
            env=_environment(task),
            timeout=task.toml.orchard.setup_timeout_sec,
        )
    finally:
        await sandbox.remove(STAGE)
    if result.ok:
        return
    how = f"ran past {result.limit_s:g} s" if result.timed_out else f"exited with {result.exit_code}"
    raise TaskInvalid(
        f"the set-up script of {task.task.id} {how}",
        hint=f"its output ended with: {cut(result.text, 600)!r}",
    )


def _environment(task: HarborTask) -> Mapping[str, str]:
    return {"ORCHARD_ENVIRONMENT": STAGE, "ORCHARD_WORKDIR": task.task.workdir}
