"""`orchard runs`: the runs under a directory, how two differ, and what dead ones left behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchard_core.cli.group import SectionedCommand

if TYPE_CHECKING:
    from pydantic import JsonValue

    from orchard_core.rollout.store.run import Run

app = typer.Typer(
    help="List runs, compare two, or clean up after runs that were killed.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list", cls=SectionedCommand)
def list_(
    root: Annotated[
        Path, typer.Argument(metavar="ROOT", help="Directory that holds run directories.")
    ] = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """List the runs under a directory, newest first."""
    import sys
    from shutil import get_terminal_size

    from orchard_core.cli.output import err, out, print_json

    rows = [_facts(run) for run in found(root)]
    if as_json:
        print_json(list(rows))
        return
    width = get_terminal_size().columns if sys.stdout.isatty() else None
    for line in listed(rows, width=width):
        out(line)
    err(f"{len(rows)} runs under {root}")


def listed(rows: list[dict[str, JsonValue]], *, width: int | None) -> list[str]:
    """A table where it fits; else two lines a run, so that no name is broken."""
    from orchard_core.cli.output import cells, table

    head = ("RUN", "TASKS", "HARNESS", "MODEL", "DONE", "SCORE", "STARTED")
    texts = [_cells(row) for row in rows]
    whole = table(head, texts, width=None)
    if width is None or max(map(cells, whole)) < width:
        return whole
    return [
        line
        for run, tasks, harness, model, done, score, started in texts
        for line in (run, f"    {started}  {done} done  score {score}  {tasks} · {harness} · {model}")
    ]


def _cells(row: dict[str, JsonValue]) -> tuple[str, ...]:
    from orchard_core.evals.clean import clean_line

    texts = [clean_line(str(row[name])) for name in ("run", "taskset", "harness", "model")]
    done, mean = f"{row['finished']}/{row['planned']}", row["mean_score"]
    score = f"{mean:.3f}" if isinstance(mean, float) else "-"
    return (*texts, done, score, str(row["started"])[5:16].replace("T", " "))


def found(root: Path) -> Iterator[Run]:
    """The runs at most three levels below a directory, newest first; what cannot be read is passed over."""
    from orchard_core.errors import StoreError
    from orchard_core.rollout.store.run import CONFIG_NAME, Run

    paths = [path for depth in range(4) for path in root.glob("/".join(["*"] * depth + [CONFIG_NAME]))]
    for path in sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True):
        try:
            yield Run(path.parent)
        except StoreError:
            continue


def _facts(run: Run) -> dict[str, JsonValue]:
    from datetime import datetime

    state = run.state()
    scores = [entry.score for entry in state.finished.values() if entry.score is not None]
    mean = sum(scores) / len(scores) if scores else None
    started = datetime.fromtimestamp(run.config.created_at)
    return {
        "run": str(run.root),
        "taskset": run.config.taskset,
        "harness": run.config.harness_text,
        "model": run.config.model_text,
        "planned": len(state.planned),
        "finished": len(state.finished),
        "scored": len(scores),
        "mean_score": mean,
        "started": started.astimezone().isoformat(timespec="seconds"),
    }


@app.command("diff", cls=SectionedCommand, short_help="Say how two runs differ, and what may be the reason.")
def diff(
    left: Annotated[Path, typer.Argument(metavar="A", help="A run directory.", show_default=False)],
    right: Annotated[Path, typer.Argument(metavar="B", help="Another.", show_default=False)],
    threshold: Annotated[float, typer.Option(help="A score of at least this has passed.")] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Say how run B differs from run A: results by task, with significance, and what may be the reason.

    Compared are configuration, versions, seeds, tasks and prompts. It reads the journals alone.
    """
    from shutil import get_terminal_size

    from orchard_core.cli.output import out, print_json
    from orchard_core.cli.report import check_threshold
    from orchard_core.cli.runs_diff import diff_lines
    from orchard_core.evals.diff import diff_runs
    from orchard_core.rollout.store.run import open_run

    check_threshold(threshold)
    found = diff_runs(open_run(left), open_run(right), threshold=threshold)
    if as_json:
        print_json(found.model_dump(mode="json"))
        return
    for line in diff_lines(found, width=get_terminal_size().columns):
        out(line)


@app.command("reap", cls=SectionedCommand, short_help="Remove what killed runs left on this machine.")
def reap(
    state_dir: Annotated[
        str | None, typer.Option(help="Where sandboxes keep their state, when it is not the default place.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Remove what killed runs left: sandbox directories, snapshots, processes, control groups.

    Run directories are never touched, nor is anything of a live run. Exits with 1 when something could
    not be removed.
    """
    from dataclasses import asdict

    from orchard_core.cli.exits import Exit
    from orchard_core.cli.output import err, out, print_json
    from orchard_core.sandbox.local.reaper import reap as clean_up

    reaped = clean_up(state_dir)
    if as_json:
        print_json(asdict(reaped))
    else:
        out(
            f"removed {reaped.sandboxes} sandboxes, {reaped.snapshots} snapshots and "
            f"{reaped.cgroups} control groups of {reaped.drivers} dead processes"
        )
        for path in reaped.left:
            err(f"could not remove {path}; try again as the user who made it", fg="yellow")
    if reaped.left:
        raise typer.Exit(Exit.UNSOUND)
