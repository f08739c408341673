"""Start-up of the command line beside the interpreter's own: `python bench/startup.py`."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

RUNS = 15
ORCHARD = Path(sys.executable).with_name("orchard")
BARE = "import typer\napp = typer.Typer()\napp.command()(lambda: None)\napp(['--help'])"
CASES = {
    "python -c pass": ([sys.executable, "-c", "pass"], None),
    "a bare typer --help": ([sys.executable, "-c", BARE], None),
    "orchard --help": ([str(ORCHARD), "--help"], 250),
    "orchard plugins": ([str(ORCHARD), "plugins"], 400),
}


def median_ms(command: list[str]) -> float:
    """Median wall time in milliseconds, after one warm-up run."""
    times = []
    for _ in range(RUNS + 1):
        begin = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        times.append((time.perf_counter() - begin) * 1000)
    return statistics.median(times[1:])


def main() -> None:
    floor = 0.0
    for name, (command, asked) in CASES.items():
        taken = median_ms(command)
        floor = floor or taken
        goal = f"asked <= {asked} ms" if asked else "floor"
        print(f"{name:24} {taken:7.0f} ms   {taken / floor:5.1f} x python -c pass   {goal}")


if __name__ == "__main__":
    main()
