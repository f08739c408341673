"""Writing the report and the rollouts' own pages to disk."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from orchard_core.errors import ConfigError, RecordCorrupt
from orchard_core.evals.html.page import render
from orchard_core.evals.html.rollout_page import render_rollout
from orchard_core.evals.html.svg import can_draw
from orchard_core.evals.html.view import anchors, show_command
from orchard_core.evals.matrix_report import Cell, MatrixReport, RolloutLine
from orchard_core.rollout.store.run import CONFIG_NAME, PLAN_NAME, open_run
from orchard_core.rollout.store.state import RunState

_OURS = frozenset({CONFIG_NAME, PLAN_NAME, "journal.jsonl", "lock"})
"""Names of what a run or a matrix is made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What was written."""

    pages: int
    """Rollouts' own pages."""
    unreadable: Sequence[str]
    """Records that could not be read, a message each."""


def write_html(report: MatrixReport, path: Path, *, trajectories: bool = False) -> Written:
    """The report to `path`; with `trajectories` a page a finished rollout in `STEM-rollouts` beside it.

    Raises ConfigError when the disk refuses.
    """
    pages: dict[str, str] = {}
    unreadable: list[str] = []
    if trajectories:
        folder = path.with_name(f"{path.stem}-rollouts")
        for anchor, found in _rollout_pages(report, back=quote(f"../{path.name}")):
            if isinstance(found, RecordCorrupt):
                unreadable.append(found.message)
            else:
                write_text(folder / f"{anchor}.html", found)
                pages[anchor] = quote(f"{folder.name}/{anchor}.html")
    write_text(path, render(report, pages=pages, drawn=can_draw()))
    return Written(pages=len(pages), unreadable=unreadable)


def _rollout_pages(report: MatrixReport, *, back: str) -> Iterator[tuple[str, str | RecordCorrupt]]:
    for number, cell in enumerate(report.cells, start=1):
        root = Path(report.root) / cell.run
        run = open_run(root)
        state = run.state()
        for anchor, line in _finished(number, cell, state):
            try:
                rollout = run.load(state.finished[line.id])
            except RecordCorrupt as error:
                yield anchor, error
            else:
                command = show_command(str(root), line.id)
                written = {"harness": run.config.harness_text, "model": run.config.model_text}
                rollout = rollout.model_copy(update=written)
                yield anchor, render_rollout(rollout, command=command, back=f"{back}#{anchor}")


def _finished(number: int, cell: Cell, state: RunState) -> Iterator[tuple[str, RolloutLine]]:
    for anchor, _, line in anchors(number, cell):
        if line.id in state.finished:
            yield anchor, line


def write_text(path: Path, text: str) -> None:
    """Whole or not at all; into a device or a pipe as it is. Lone surrogates become question marks.

    Raises ConfigError.
    """
    check_target(path)
    if path.exists() and not path.is_file():
        return _write_into(path, text)
    path = path.resolve()  # a link stays a link
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(text, encoding="utf-8", errors="replace")
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        raise _unwritten(error) from error


def check_target(path: Path) -> None:
    """Raises ConfigError where a report would take the place of what a run or a matrix is made of."""
    if path.name in _OURS:
        raise ConfigError(
            f"a report named {path} could overwrite a run or a matrix", hint="choose another --output"
        )


def _write_into(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise _unwritten(error) from error


def _unwritten(error: OSError) -> ConfigError:
    return ConfigError(f"the report cannot be written: {error}", hint="choose another --output")
