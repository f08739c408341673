"""Start-up of the command line beside the interpreter's own: `python bench/startup.py [--json]`."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench.table import Bound, Table, at_most, options

RUNS = 15
ORCHARD = str(Path(sys.executable).with_name("orchard"))
PASS = [sys.executable, "-c", "pass"]
TYPER = [
    sys.executable,
    "-c",
    "import typer\napp = typer.Typer()\napp.command()(lambda: None)\napp(['--help'])",
]
CASES: dict[str, tuple[list[str], Bound | None]] = {
    "python -c pass": (PASS, None),
    "a bare typer --help": (TYPER, None),
    "orchard --help": ([ORCHARD, "--help"], at_most(250)),
    "orchard plugins": ([ORCHARD, "plugins"], at_most(400)),
}


def once_ms(command: list[str]) -> tuple[float, float]:
    """Wall time and processor time of one run, milliseconds."""
    begin, before = time.perf_counter(), processor_s()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - begin) * 1000, (processor_s() - before) * 1000


def processor_s() -> float:
    """Of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    table = Table("startup", as_json=options(__doc__).parse_args().json)
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in CASES}
    for _ in range(RUNS + 1):  # they take turns, so that a disturbance meets all; the first round warms up
        for name, (command, _) in CASES.items():
            taken[name].append(once_ms(command))
    middle = {name: statistics.median(wall for wall, _ in times[1:]) for name, times in taken.items()}
    for name, (_, asked) in CASES.items():
        for peer in ("python -c pass", "a bare typer --help"):
            if asked or (name, peer) == ("a bare typer --help", "python -c pass"):
                bound = asked if peer == "python -c pass" else None
                table.row(name, middle[name], "ms", peer=peer, beside=middle[peer], asked=bound)
    for name, times in taken.items():
        least, processor = min(wall for wall, _ in times[1:]), statistics.median(cpu for _, cpu in times[1:])
        table.note(f"{name:20} least {least:4.0f} ms, processor time {processor:4.0f} ms")
    return table.end()


if __name__ == "__main__":
    sys.exit(main())
