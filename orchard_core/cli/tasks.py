"""`orchard tasks list` and `orchard tasks show`: what a task set holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orchard_core.cli.group import SectionedCommand

if TYPE_CHECKING:
    from orchard_core.tasks.contract import TaskSet
    from orchard_core.types.task import Task

app = typer.Typer(help="List a task set's tasks, or show one.", no_args_is_help=True, rich_markup_mode=None)

TaskSetArgument = Annotated[str, typer.Argument(help="Task set, such as workbench:16 or harbor:PATH.")]
OptionPairs = Annotated[
    list[str] | None,
    typer.Option("--taskset-option", help="An option of the task set, NAME=VALUE. Repeatable."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list", cls=SectionedCommand)
def list_(
    taskset: TaskSetArgument,
    task: Annotated[str, typer.Option("--task", help="Only ids that match this glob.")] = "*",
    taskset_option: OptionPairs = None,
    as_json: AsJson = False,
) -> None:
    """List the tasks: id, tags, limits. What was left out, and why, goes to stderr."""
    from orchard_core.cli.clean import clean_line
    from orchard_core.cli.output import console, print_json, table

    loaded = load(taskset, taskset_option)
    tasks = matching(loaded, task)
    if as_json:
        print_json([each.model_dump(mode="json", exclude={"metadata"}) for each in tasks])
    else:
        rows = table("TASK", "TAGS", "TIME LIMIT", "INSTRUCTION")
        for each in tasks:
            limit = f"{each.agent_timeout_s:g} s"
            rows.add_row(each.id, clean_line(", ".join(each.tags)), limit, clean_line(each.instruction, 60))
        console().print(rows)
    errors = console(stderr=True)
    errors.print(f"{len(tasks)} tasks in {loaded.name}")
    for problem in loaded.problems():
        errors.print(f"left out or ignored: {clean_line(problem, 500)}", style="yellow")


@app.command("show", cls=SectionedCommand)
def show(
    taskset: TaskSetArgument,
    task: Annotated[str, typer.Argument(help="The task's id.")],
    taskset_option: OptionPairs = None,
    solution: Annotated[bool, typer.Option("--solution", help="Show the known solution too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show one task: instruction, limits, sandbox, and on request its solution."""
    from orchard_core.cli.output import print_json

    loaded = load(taskset, taskset_option)
    found = one(loaded, task)
    spec = loaded.spec(found)
    known = loaded.solution(found) if solution else None
    if as_json:
        print_json(
            {
                "task": found.model_dump(mode="json"),
                "sandbox": spec.model_dump(mode="json", exclude={"files"}),
                "solution": known.model_dump(mode="json") if known else None,
            }
        )
        return
    _print_task(found, str(spec.image), spec.network.mode.value)
    if solution:
        _print_solution(loaded, found)


def load(taskset: str, options: list[str] | None) -> TaskSet:
    """The task set the user named."""
    from orchard_core.cli.options import key_values
    from orchard_core.plugins.lookup import load_taskset

    return load_taskset(taskset, **key_values(options or [], "--taskset-option"))


def matching(taskset: TaskSet, pattern: str) -> list[Task]:
    """Tasks whose id matches a glob."""
    from fnmatch import fnmatchcase

    return [task for task in taskset.tasks() if fnmatchcase(task.id, pattern)]


def one(taskset: TaskSet, task_id: str) -> Task:
    """The task of this id. Raises ConfigError with the closest ids."""
    from difflib import get_close_matches

    from orchard_core.errors import ConfigError

    tasks = {task.id: task for task in taskset.tasks()}
    if task_id in tasks:
        return tasks[task_id]
    close = get_close_matches(task_id, tasks, n=3, cutoff=0.4)
    guess = f"; did you mean {' or '.join(close)}?" if close else ""
    raise ConfigError(
        f"{taskset.name} has no task {task_id!r}{guess}", hint=f"orchard tasks list {taskset.name}"
    )


def _print_task(task: Task, image: str, network: str) -> None:
    from orchard_core.cli.clean import clean, clean_line
    from orchard_core.cli.output import console

    out = console()
    out.print(task.id, style="bold")
    out.print(f"tags       {clean_line(', '.join(task.tags)) or '-'}")
    out.print(f"sandbox    image {clean_line(image)}, network {network}, starts in {clean_line(task.workdir)}")
    out.print(f"limits     agent {task.agent_timeout_s:g} s, verifier {task.verifier_timeout_s:g} s")
    out.print(f"verified   in {task.verify_in.value} sandbox, on {clean_line(', '.join(task.artifacts)) or '-'}")
    out.print(f"\n{clean(task.instruction).rstrip()}")


def _print_solution(taskset: TaskSet, task: Task) -> None:
    from orchard_core.cli.clean import clean
    from orchard_core.cli.output import console

    out = console()
    known = taskset.solution(task)
    if known is None:
        out.print("\nno known solution")
        return
    out.print("\nsolution", style="bold")
    for step in known.steps:
        if step.thought:
            out.print(f"# {clean(step.thought)}", style="dim")
        out.print(clean(step.command))
    if known.answer:
        out.print(f"answer: {clean(known.answer)}")
