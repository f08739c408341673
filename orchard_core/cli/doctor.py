"""`orchard doctor`: are the tasks of a task set sound?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchard_core.cli.exits import Exit

if TYPE_CHECKING:
    from orchard_core.tasks.contract import TaskSet
    from orchard_core.tasks.doctor import Diagnosis
    from orchard_core.types.task import Task


def doctor(
    taskset: Annotated[
        str, typer.Argument(metavar="TASKSET", help="Task set, such as workbench:16.", show_default=False)
    ],
    task: Annotated[str, typer.Option(metavar="GLOB", help="Only tasks whose id matches.")] = "*",
    limit: Annotated[int | None, typer.Option(help="At most so many tasks, the first ones.")] = None,
    repeats: Annotated[
        int, typer.Option(help="Plays of each solution; more than one finds flaky tasks.")
    ] = 1,
    sandbox: Annotated[str, typer.Option(help="Sandbox provider.")] = "local",
    taskset_option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="An option of the task set. Repeatable.")
    ] = None,
    concurrency: Annotated[int, typer.Option(help="Tasks at once.")] = 4,
    quarantine: Annotated[
        Path | None, typer.Option(help="Write the tasks to leave out here; JSON if it ends in .json.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check that each task can be solved, and not by doing nothing.

    Plays every task with its known solution, which must pass, and with an agent that does nothing, which
    must not. No model takes part. Exits with 1 when a task fails either.
    """
    from orchard_core.cli.interrupt import cancelling, run_async
    from orchard_core.cli.tasks import load, matching
    from orchard_core.errors import ConfigError
    from orchard_core.tasks.doctor import SOUND

    loaded = load(taskset, taskset_option)
    chosen = matching(loaded, task)[:limit]
    if not chosen:
        raise ConfigError(f"no task of {taskset} matches {task!r}", hint=f"orchard tasks list {taskset}")
    found: list[Diagnosis] = []
    work = cancelling(lambda: _examine(loaded, chosen, sandbox, concurrency, repeats, found))
    _, code = run_async(work)
    found.sort(key=lambda each: each.task_id)
    _report(taskset, found, len(chosen), quarantine, as_json=as_json)
    if code is not Exit.OK:
        raise typer.Exit(code)
    if any(each.verdict not in SOUND for each in found):
        raise typer.Exit(Exit.UNSOUND)


async def _examine(
    taskset: TaskSet, tasks: list[Task], sandbox: str, concurrency: int, repeats: int, found: list[Diagnosis]
) -> None:
    from orchard_core.cli.output import err
    from orchard_core.evals.clean import clean_line
    from orchard_core.plugins.lookup import load_provider
    from orchard_core.tasks.doctor import SOUND, examine

    provider = load_provider(sandbox)
    try:
        async for each in examine(taskset, provider, concurrency=concurrency, repeats=repeats, tasks=tasks):
            found.append(each)
            sound = each.verdict in SOUND
            line = f"[{len(found)}/{len(tasks)}] {each.task_id}: {each.verdict.value}"
            if not sound:
                line += f": {clean_line(each.reason)}"
            err(line, **({} if sound else {"fg": "red"}))
    finally:
        await provider.close()


def _report(taskset: str, found: list[Diagnosis], planned: int, path: Path | None, *, as_json: bool) -> None:
    from collections import Counter

    from orchard_core.cli.output import out, print_json
    from orchard_core.errors import ConfigError
    from orchard_core.tasks.doctor import quarantine, write_quarantine

    counts = Counter(each.verdict.value for each in found)
    if as_json:
        print_json(
            {
                "taskset": taskset,
                "planned": planned,
                "examined": len(found),
                "verdicts": dict(counts),
                "diagnoses": [each.model_dump(mode="json") for each in found],
            }
        )
    else:
        out(f"{taskset}: {len(found)} of {planned} tasks examined", bold=True)
        for verdict, number in counts.most_common():
            out(f"  {number:4d}  {verdict:14s} {_MEANING.get(verdict, '')}".rstrip())
    if path is None:
        return
    listed = quarantine(taskset, found)
    try:
        write_quarantine(path, listed)
    except OSError as error:
        raise ConfigError(f"the quarantine list {path} cannot be written: {error.strerror}") from error
    if not as_json:
        out(f"quarantine list: {path}, {len(listed.tasks)} tasks")


_MEANING = {
    "ok": "the solution passes, doing nothing does not",
    "no_solution": "doing nothing does not pass; there is no solution to try",
    "oracle_failed": "the known solution does not pass",
    "flaky": "the known solution passes sometimes",
    "noop_passed": "doing nothing passes",
    "broken": "it cannot be run or verified at all",
}
