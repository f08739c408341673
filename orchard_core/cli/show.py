"""`orchard show`: the rollouts of a run, or one of them turn by turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from orchard_core.rollout.store.entry import Finished
    from orchard_core.rollout.store.run import Run
    from orchard_core.rollout.store.state import RunState


def show(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="Run directory, or a matrix.", show_default=False)
    ],
    rollout: Annotated[
        str,
        typer.Argument(
            metavar="ROLLOUT",
            help="Beginning of a rollout's id, or TASK or TASK#ATTEMPT.",
            show_default=False,
        ),
    ] = "",
    outcome: Annotated[str, typer.Option(help="List only this outcome, such as timed_out.")] = "",
    failed: Annotated[
        bool, typer.Option("--failed", help="List only those with a score below 1, or without one.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Show long texts whole.")] = False,
    pager: Annotated[
        bool, typer.Option("--pager/--no-pager", help="Page a rollout when it is longer than the screen.")
    ] = True,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: the lines, or the whole record.")
    ] = False,
) -> None:
    """List the rollouts of a run, or read one of them turn by turn.

    Of a matrix, its cells and their run directories are listed.
    """
    from orchard_core.rollout.matrix.plan import is_matrix
    from orchard_core.rollout.store.run import open_run

    if is_matrix(run) and not rollout:
        _list_cells(run, as_json=as_json)
        return
    opened = open_run(run)
    if rollout:
        _show_one(opened, pick(opened, rollout), full=full, pager=pager, as_json=as_json)
    else:
        _list(opened, _chosen(opened, outcome, failed=failed), as_json=as_json)


def _list_cells(root: Path, *, as_json: bool) -> None:
    from orchard_core.cli.output import err, print_json, print_table
    from orchard_core.evals.clean import clean_line
    from orchard_core.rollout.matrix.plan import cell_directory, read_plan
    from orchard_core.rollout.store.run import CONFIG_NAME, open_run

    rows: list[tuple[str, str, str]] = []
    for cell in read_plan(root).cells:
        path = cell_directory(root, cell.key)
        state = open_run(path).state() if (path / CONFIG_NAME).is_file() else None
        done = f"{len(state.finished)}/{len(state.planned)}" if state else "refused" if cell.refused else "-"
        rows.append((clean_line(cell.key.text), done, str(path) if state else ""))
    if as_json:
        print_json([{"cell": cell, "done": done, "run": path} for cell, done, path in rows])
        return
    err(f"{root} is a matrix of {len(rows)} cells, each a run: orchard show RUN; orchard report {root}")
    print_table(("CELL", "DONE", "RUN"), rows)


def pick(run: Run, name: str) -> Finished:
    """The finished rollout that `name` means. Raises ConfigError when it means none, or several."""
    from orchard_core.errors import ConfigError

    entries = run.finished()
    task, _, attempt = name.partition("#")
    found = [entry for entry in entries if entry.id == name]
    found = found or [
        entry for entry in entries if entry.task == task and attempt in ("", str(entry.attempt))
    ]
    found = found or [entry for entry in entries if entry.id.startswith(name)]
    if not found:
        raise ConfigError(f"{run.root} has no finished rollout {name!r}", hint=f"orchard show {run.root}")
    if len(found) > 1:
        names = ", ".join(f"{entry.task}#{entry.attempt}" for entry in found[:6])
        raise ConfigError(f"{name!r} means {len(found)} rollouts: {names}", hint="name one of them")
    return found[0]


def _chosen(run: Run, outcome: str, *, failed: bool) -> list[Finished]:
    from orchard_core.types.rollout import Outcome

    outcomes = [known.value for known in Outcome]
    if outcome and outcome not in outcomes:
        raise typer.BadParameter(f"{outcome!r} is not one of {', '.join(outcomes)}", param_hint="--outcome")
    return [
        entry
        for entry in run.finished()
        if (not outcome or entry.outcome.value == outcome)
        and (not failed or entry.score is None or entry.score < 1)
    ]


def _list(run: Run, entries: list[Finished], *, as_json: bool) -> None:
    from orchard_core.cli.output import err, print_json, print_table

    if as_json:
        print_json([entry.model_dump(mode="json", exclude=_STORAGE) for entry in entries])
        return
    state = run.state()
    extra = tuple(name for name, cell in _EXTRA.items() if any(map(cell, entries)))
    head = ("ROLLOUT", "TASK", "SCORE", "OUTCOME", "TURNS", "TOKENS", "COST", "TIME", *extra)
    print_table(
        head, [(*_cells(entry, state), *(_EXTRA[name](entry) for name in extra)) for entry in entries]
    )
    if not entries:
        err("no rollout to list")
    missing = len(run.missing())
    if missing:
        err(f"{missing} rollouts are missing; orchard run --resume --out {run.root}", fg="yellow")


_STORAGE = {"type", "shard", "offset", "length"}
_EXTRA: Mapping[str, Callable[[Finished], str]] = {
    "TRIES": lambda entry: str(entry.tries) if entry.tries > 1 else "",
    "ERROR": lambda entry: entry.error or "",
}
"""Columns that are shown where a rollout has something to say in them."""


def _cells(entry: Finished, state: RunState) -> tuple[str, ...]:
    """Tokens, cost and time are those of all its tries."""
    from orchard_core.cli.display.words import count, money
    from orchard_core.evals.clean import clean_line

    spent = state.spent_on(entry)
    return (
        entry.id[:10],
        clean_line(f"{entry.task}#{entry.attempt}"),
        "-" if entry.score is None else f"{entry.score:g}",
        entry.outcome.value,
        str(entry.turns),
        count(spent.usage.total),
        money(spent.cost_usd),
        f"{state.seconds_of(entry):.1f} s",
    )


def _show_one(run: Run, entry: Finished, *, full: bool, pager: bool, as_json: bool) -> None:
    from orchard_core.cli.output import print_json
    from orchard_core.cli.reading import page

    rollout = run.load(entry)
    if as_json:
        print_json(rollout.model_dump(mode="json"))
    else:
        page(rollout, full=full, pager=pager, named=f"{run.config.harness_text} / {run.config.model_text}")
