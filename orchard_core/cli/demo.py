"""`orchard demo`: real tasks in real sandboxes, with scripted models, in under a minute."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchard_core.cli.exits import Exit

if TYPE_CHECKING:
    from orchard_core.cli.recipe import Recipe
    from orchard_core.cli.summary import RunSummary
    from orchard_core.rollout.stop import Stop

_MODELS = ("oracle", "noisy-oracle")
_TASKSETS = ("workbench:18", "claw-bench:14")
"""Generated tasks, and tasks that others wrote, one of each of their 14 domains."""

_NEXT = """
The oracle plays each task's known solution; the noisy oracle makes mistakes.
{activate}Now a model of your own:

  OpenAI   export OPENAI_API_KEY=sk-...
           orchard run workbench:16 --model openai:gpt-5-mini
  vLLM     orchard run workbench:16 --model openai:MODEL \\
               --base-url http://localhost:8000/v1
  Ollama   orchard run workbench:16 --model openai:MODEL \\
               --base-url http://localhost:11434/v1

What went wrong:    orchard show {failed} --failed
Read one of them:   orchard show {failed} {rollout}
In your browser:    orchard view {failed}
A training set:     orchard data mix {failed} --out sets/first
What else there is: orchard plugins"""


def demo(
    out: Annotated[
        Path | None, typer.Option(help="Directory for the runs [default: a new one under runs/].")
    ] = None,
    concurrency: Annotated[int, typer.Option(help="Rollouts at once.")] = 8,
    plain: Annotated[bool, typer.Option("--plain", help="Plain lines instead of a live screen.")] = False,
) -> None:
    """Run real tasks in real sandboxes with scripted models.

    64 rollouts, no API key needed; ends with a table, a report, and what to type next.
    """
    import time

    from orchard_core.cli.output import err

    err("Real tasks in real sandboxes, played by scripted models: no API key, under a minute.\n")
    from orchard_core.cli.interrupt import run_async

    root = out or Path("runs") / f"demo-{time.strftime('%Y%m%d-%H%M%S')}"
    recipes = _recipes(root, concurrency)
    _, code = run_async(lambda stop: _run(recipes, stop, plain=plain))
    if code is not Exit.OK:
        raise typer.Exit(code)
    _conclude(recipes, root)


def _recipes(root: Path, concurrency: int) -> list[Recipe]:
    from orchard_core.cli.recipe import make_recipe

    return [
        make_recipe(
            {
                "taskset": taskset,
                "model": model,
                "concurrency": concurrency,
                "out": str(root / f"{taskset.partition(':')[0]}-{model}"),
            },
            where="orchard demo",
        )
        for taskset in _tasksets()
        for model in _MODELS
    ]


def _tasksets() -> tuple[str, ...]:
    """Without claw-bench, as many generated tasks."""
    from orchard_core.cli.output import err
    from orchard_core.errors import PluginNotInstalled
    from orchard_core.plugins.lookup import load_taskset

    try:
        load_taskset(_TASKSETS[-1])
    except PluginNotInstalled as error:
        err(f"without claw-bench ({error.hint}): more generated tasks instead", fg="yellow")
        return ("workbench:32",)
    return _TASKSETS


async def _run(recipes: list[Recipe], stop: Stop, *, plain: bool) -> None:
    from orchard_core.cli.display.watcher import make_watcher
    from orchard_core.cli.launch import execute, title

    for recipe in recipes:
        if stop.requested:
            return
        watcher = make_watcher(title(recipe), plain=plain)
        with watcher.showing():
            await execute(recipe, recipe.out or "", watcher, stop)


def _conclude(recipes: list[Recipe], root: Path) -> None:
    from orchard_core.cli.output import out, print_table
    from orchard_core.cli.report import render
    from orchard_core.cli.summary import RunSummary

    runs = [(recipe, RunSummary.of(Path(recipe.out or ""))) for recipe in recipes]
    out()
    print_table(
        ("TASK SET", "HARNESS", "MODEL", "SCORED", "REWARD", "TIME"),
        [(recipe.taskset, recipe.harness, recipe.model, *_figures(summary)) for recipe, summary in runs],
    )
    report = root / "report.md"
    report.write_text(render([Path(summary.run) for _, summary in runs]), encoding="utf-8")
    out(f"\n{sum(summary.finished for _, summary in runs)} rollouts. Report: {report}", bold=True)
    worst = min(runs, key=lambda pair: pair[1].mean_score or 0.0)[1]
    out(_NEXT.format(activate=_activate(), failed=worst.run, rollout=_one_failed(Path(worst.run))))
    if any(summary.scored < summary.planned for _, summary in runs):
        raise typer.Exit(Exit.UNSOUND)


def _activate() -> str:
    """How to come by the command `orchard`, when the shell that ran this would not find it."""
    import shutil
    import sys

    script, here = Path(sys.prefix, "bin", "activate"), Path.cwd()
    if shutil.which("orchard") or not script.exists():
        return ""
    path = script.relative_to(here) if here in script.parents else script
    return f"So that your shell finds orchard: source {path}\n"


def _one_failed(root: Path) -> str:
    """A rollout worth reading: the first that did not pass, else the first."""
    from orchard_core.rollout.store.run import open_run

    entries = open_run(root).finished()
    failed = [entry for entry in entries if entry.score is None or entry.score < 1] or entries
    return failed[0].task if failed else "ROLLOUT"


def _figures(summary: RunSummary) -> tuple[str, str, str]:
    mean = "none" if summary.mean_score is None else f"{summary.mean_score:.3f}"
    return f"{summary.scored}/{summary.planned}", mean, f"{summary.seconds:.1f} s"
