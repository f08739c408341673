"""Every harness on the same tasks with the oracle: all solve all tasks they can express, and what that costs.

    python bench/harnesses.py [--harness NAME ...] [--tasks 20] [--out DIRECTORY] [--json]

The oracle plays each task's known solution through whatever tools a harness offers, so that what is measured
is the harness: its start, its own work a turn, its prompts. Real packages and programs; what is not installed
is made once first. `react` is the peer.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from bench.table import Table, at_least, options, run_as_product
from orchard_core import Cell, MatrixOptions, build_matrix, run_matrix

PEER = "react"
HARNESSES = ("react", "miniswe", "openhands", "cli:pi", "cli:codex", "cli:claude", "cli:opencode", "cli:kimi")
CONCURRENCY = 3


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--harness", action="append", help="these instead of all; react always takes part")
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--out", type=Path, default=None, help="keep the matrix here")
    given = parser.parse_args()
    names = list(dict.fromkeys([PEER, *(given.harness or HARNESSES)]))
    table = Table("harnesses", as_json=given.json)
    with tempfile.TemporaryDirectory(prefix="orchard-bench-") as folder:
        out = given.out or Path(folder, "matrix")
        run_as_product(lambda: play(out, names, given.tasks))
        matrix = build_matrix(out)
    cells = {cell.key.harness: cell for cell in matrix.cells}
    for refused in matrix.refused:
        table.note(f"{refused.key.harness} left out: {refused.reason}")
    for name, cell in cells.items():
        peer = cells[PEER]
        solved, theirs = cell.report.total.passed, peer.report.total.passed
        table.row(f"{name}, solved", solved, "tasks", peer=PEER, beside=theirs, asked=at_least(given.tasks))
        table.row(f"{name}, a rollout", seconds(cell), "s", peer=PEER, beside=seconds(peer))
        table.row(f"{name}, tokens", tokens(cell), "each", peer=PEER, beside=tokens(peer))
    return table.end()


async def play(out: Path, names: list[str], tasks: int) -> None:
    async for _ in run_matrix(
        harnesses=names,
        models=["oracle"],
        tasksets=[f"workbench:{tasks}"],
        out=out,
        options=MatrixOptions(concurrency=CONCURRENCY),
    ):
        pass


def seconds(cell: Cell) -> float:
    return cell.report.total.spending.wall_clock_mean_s or 0.0


def tokens(cell: Cell) -> float:
    total = cell.report.total
    return total.spending.usage.total / max(total.finished, 1)


if __name__ == "__main__":
    sys.exit(main())
