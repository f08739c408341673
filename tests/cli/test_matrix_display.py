"""What a user sees while a matrix goes on."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from orchard_core import Attribution, CellKey, Outcome, RolloutStarted, RunFinished, RunStarted
from orchard_core.cli.display.matrix_live import screen
from orchard_core.cli.display.matrix_plain import PlainMatrix
from orchard_core.cli.display.matrix_progress import MatrixProgress
from orchard_core.cli.display.matrix_watcher import Display
from orchard_core.rollout.store.entry import Finished, Planned
from orchard_core.rollout.store.state import RunState

from .test_display import call, finished, started

MODELS = ("openai:Qwen/Qwen3-Coder-30B-A3B-Instruct", "oracle")
HARNESSES = ("react", "miniswe", "openhands", "cli:claude")
TASKSETS = ("workbench:20", "harbor:/data/terminal-bench-2")


def key(harness: str = "react", model: str = "oracle", taskset: str = "workbench:20") -> CellKey:
    return CellKey(harness=harness, model=model, taskset=taskset)


def ended(name: str, attempt: int, score: float | None) -> Finished:
    return Finished(
        id=name, task="t", attempt=attempt, tries=1, outcome=Outcome.COMPLETED, attribution=Attribution.AGENT,
        score=score, started_at=0.0, finished_at=1.0, shard=0, offset=0, length=1,
    )  # fmt: skip


def going_on() -> MatrixProgress:
    progress = MatrixProgress()
    for taskset in TASKSETS:
        for model in MODELS:
            for harness in HARNESSES:
                cell = key(harness, model, taskset)
                if (harness, model) == ("openhands", "oracle"):
                    progress.cell(cell).refused = "no Python 3.12"
                    continue
                progress.handle(cell, RunStarted(run="r", planned=80, finished=0, at=0))
                for number, score in enumerate((1.0, 0.0, 1.0, None)):
                    progress.handle(cell, finished(f"{number}", 10, score))
                progress.handle(cell, call("x", 11, 5, 0.37 if model != "oracle" else None))
    return progress


def drawn(progress: MatrixProgress, width: int, height: int = 50) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, height=height, markup=False, emoji=False, highlight=False)
    console.print(screen("matrix m", progress, 20.0, console))
    return out.getvalue().splitlines()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_row_a_cell_fits_the_terminal_in_one_line(width: int) -> None:
    lines = drawn(going_on(), width)
    assert max(map(len, lines)) <= width
    [head] = [number for number, line in enumerate(lines) if "HARNESS" in line or "HARNE…" in line]
    rows = lines[head + 1 :]
    assert len(rows) == 16
    assert sum("refused" in row for row in rows) == 2
    assert all("4/80" in row and "50.0%" in row for row in rows if "refused" not in row)


def test_a_low_terminal_shows_what_runs_and_counts_the_rest() -> None:
    progress = going_on()
    progress.handle(key("cli:claude", "oracle", TASKSETS[1]), started("r", 12))
    lines = drawn(progress, 80, height=12)
    assert len(lines) <= 12
    assert "and 11 more cells" in lines[-1]
    assert any("claude" in line and "oracle" in line for line in lines)


def test_names_that_all_cells_share_stand_in_the_title() -> None:
    progress = MatrixProgress()
    for harness in HARNESSES:
        progress.handle(key(harness), RunStarted(run="r", planned=1, finished=0, at=0))
    lines = drawn(progress, 80)
    assert lines[0] == "matrix m · oracle · workbench:20"
    assert "MODEL" not in "".join(lines)


def test_earlier_starts_count_and_what_is_run_again_counts_once() -> None:
    state = RunState()
    for number, score in enumerate((1.0, None)):
        state.apply(Planned(id=f"t-{number}", task="t", attempt=number, seed=0))
        state.apply(ended(f"t-{number}", number, score))
    progress = MatrixProgress()
    progress.open(key(), state)
    cell = progress.cell(key())
    assert (len(cell.scores), cell.passed, cell.errors, cell.planned) == (2, 1, 1, 2)
    progress.handle(key(), RunStarted(run="r", planned=2, finished=1, at=0))
    progress.handle(key(), started("t-1", 1))
    assert (len(cell.scores), cell.errors) == (1, 0)
    progress.handle(key(), finished("t-1", 2, 1.0))
    assert (cell.passed, cell.errors, cell.rate) == (2, 0, 1.0)


def test_plain_lines_tell_each_cell_once_and_why_one_was_refused() -> None:
    out = io.StringIO()
    display = Display(PlainMatrix("matrix m", out), now=lambda: 20.0)
    display.refused(key("nosuch"), "there is no harness 'nosuch'\x1b[31m")
    display.event(key(), RunStarted(run="r", planned=1, finished=0, at=0))
    with display.showing():
        display.event(key(), RolloutStarted(rollout="a", task="t", attempt=0, at=1))
        display.event(key(), finished("a", 2, 1.0))
        display.event(key(), RunFinished(run="r", finished=1, cancelled=False, at=3))
        display.capped("$5 of $5 are used up")
    text = out.getvalue()
    assert text.count("react · oracle · workbench:20: 1 of 1 passed") == 1
    assert text.count("refused: there is no harness 'nosuch'") == 1
    assert text.endswith("stopped: $5 of $5 are used up\n")
    assert "\x1b" not in text
