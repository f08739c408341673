"""`orchard tasks list` and `orchard tasks show`: what a task set holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orchard_core.cli.group import SectionedCommand

if TYPE_CHECKING:
    from orchard_core.tasks.contract import TaskSet
    from orchard_core.types.task import Solution, Task

app = typer.Typer(help="List a task set's tasks, or show one.", no_args_is_help=True, rich_markup_mode=None)

TaskSetArgument = Annotated[
    str, typer.Argument(metavar="TASKSET", help="Task set, such as workbench:16 or harbor:PATH.")
]
OptionPairs = Annotated[
    list[str] | None,
    typer.Option("--taskset-option", metavar="NAME=VALUE", help="An option of the task set. Repeatable."),
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
    from orchard_core.cli.output import err, print_json, print_table
    from orchard_core.evals.clean import clean_line

    loaded = load(taskset, taskset_option)
    tasks = matching(loaded, task)
    if as_json:
        print_json([each.model_dump(mode="json", exclude={"metadata"}) for each in tasks])
    else:
        rows = [
            (
                each.id,
                clean_line(", ".join(each.tags)),
                f"{each.agent_timeout_s:g} s",
                _headline(each.instruction),
            )
            for each in tasks
        ]
        print_table(("TASK", "TAGS", "LIMIT", "INSTRUCTION"), rows)
    err(f"{len(tasks)} {'task' if len(tasks) == 1 else 'tasks'} in {loaded.name}")
    for problem in loaded.problems():
        err(clean_line(problem, 500), fg="yellow")


@app.command("show", cls=SectionedCommand)
def show(
    taskset: TaskSetArgument,
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task's id.")],
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
        _print_solution(known)


def _headline(instruction: str) -> str:
    """The first line that says something, without Markdown's marks."""
    from orchard_core.evals.clean import clean, clean_line

    lines = (line.lstrip("# ").strip() for line in clean(instruction).splitlines())
    return clean_line(next((line for line in lines if line), ""), 60)


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
    from orchard_core.cli.output import out
    from orchard_core.evals.clean import clean, clean_line

    out(task.id, bold=True)
    out(f"tags      {clean_line(', '.join(task.tags)) or '-'}")
    out(f"sandbox   image {clean_line(image)}, network {network}, starts in {clean_line(task.workdir)}")
    out(f"limits    agent {task.agent_timeout_s:g} s, verifier {task.verifier_timeout_s:g} s")
    out(f"verified  in {_WHERE[task.verify_in.value]}, on {clean_line(', '.join(task.artifacts)) or '-'}")
    out(f"\n{clean(task.instruction).rstrip()}")


_WHERE = {"fresh": "a fresh sandbox", "same_sandbox": "the agent's own sandbox"}


def _print_solution(known: Solution | None) -> None:
    from orchard_core.cli.output import out
    from orchard_core.evals.clean import clean

    if known is None:
        out("\nno known solution")
        return
    out("\nsolution", bold=True)
    for step in known.steps:
        if step.thought:
            out(f"# {clean(step.thought)}", dim=True)
        out(clean(step.command).rstrip())
    if known.answer:
        out(f"answer: {clean(known.answer)}")
