"""`orchard data mix` of 20,000 synthetic 30-turn rollouts, beside the same through HF `datasets`.

    python bench/data_mix.py [--quick] [--rollouts 20000] [--keep DIRECTORY] [--no-peers] [--json]

Four harnesses, a file of JSON lines each; lengths are log-normal with a tail to 64,000 tokens; one row in a
hundred is broken in each published way. Both sides drop over-long rows, calls of undefined tools, unparsable
actions, failed rollouts and exact duplicates, interleave the sources with equal weights until each is used
up, and write Parquet; that they kept the same rows is checked. Timed are whole commands, interpreter
included. Peers, all in bench/peers/datasets_mix.py:

- `map`, to which the asked figure is held: `datasets` as its documentation shows it, a map that adds flags to
  each row (two processes), a filter for each flag and one for digests seen, `interleave_datasets`,
  `to_parquet`;
- `fused`, beside it: the least work in `datasets` that we found, one batched map to flags alone (two
  processes) and a `select`, then the same;
- `stream`, with --stream: all of it streamed, in one process.

Memory is the largest sum over all processes of a side of what each holds
that is no file's, looked at every 50 ms.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.rollouts_made import write_sources
from bench.table import Of, Table, at_least, at_most, options

ORCHARD = str(Path(sys.executable).with_name("orchard"))
PEER = str(Path(__file__).parent / "peers" / "datasets_mix.py")
ROLLOUTS, QUICK = 20_000, 2_000
LEAST, MEGABYTES, FLAT = 5, 500, 1.25
NAMED, BESIDE = "map", "fused"


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--rollouts", type=int, default=ROLLOUTS)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK:,} rollouts, to try it")
    parser.add_argument("--keep", type=Path, default=None, help="work here, and leave the sources")
    parser.add_argument("--no-peers", action="store_true", help="ours alone")
    parser.add_argument("--stream", action="store_true", help="the streamed peer as well: it takes minutes")
    given = parser.parse_args()
    peers = () if given.no_peers else (NAMED, BESIDE, *(["stream"] if given.stream else ()))
    rollouts = QUICK if given.quick else given.rollouts
    table = Table("data_mix", as_json=given.json)
    with tempfile.TemporaryDirectory(prefix="orchard-bench-") as folder:
        compare(table, given.keep or Path(folder), rollouts, peers=peers)
    return table.end()


def compare(table: Table, root: Path, rollouts: int, *, peers: Sequence[str]) -> None:
    sources = made(root / f"sources-{rollouts}", rollouts)
    size = sum(path.stat().st_size for path in sources) / 1e6
    table.note(f"{rollouts:,} rollouts, {size:,.0f} MB of JSON lines, load {os.getloadavg()[0]:.1f}")
    ours = mixed(root / "ours", sources)
    table.note(f"ours: {ours.cpu:.1f} s of CPU")
    theirs = [run for name in peers if (run := peer(table, name, root / f"peer-{name}", sources)) is not None]
    for run in theirs:
        asked = at_most(1 / LEAST, Of.RATIO) if run.name == NAMED else None
        table.row(f"mix of {rollouts:,} rollouts", ours.seconds, "s", peer=f"datasets, {run.name}",
                  beside=run.seconds, asked=asked)  # fmt: skip
        times = f"{run.seconds / ours.seconds:.1f} times as fast as {run.name}"
        table.note(f"{times} ({run.cpu / ours.cpu:.1f} by CPU time)")
        table.row("rows that only one side kept", len(run.ids ^ ours.ids), "rows", peer=run.name, beside=0,
                  asked=at_most(0))  # fmt: skip
    if not theirs:
        table.row(f"mix of {rollouts:,} rollouts", ours.seconds, "s", peer="no peer", beside=0.0)
    memory = min((run.megabytes for run in theirs), default=0.0)
    table.row("its peak memory", ours.megabytes, "MB", peer="the least of theirs", beside=memory,
              asked=at_most(MEGABYTES))  # fmt: skip
    quarter = mixed(root / "ours-quarter", made(root / f"sources-{rollouts // 4}", rollouts // 4))
    table.row(
        "the same, of a quarter as many", quarter.megabytes, "MB", peer="of all", beside=ours.megabytes,
        asked=at_least(1 / FLAT, Of.RATIO),
    )  # fmt: skip


def made(folder: Path, rollouts: int) -> list[Path]:
    """The sources; those of an earlier run are taken as they are."""
    done = folder / "done"
    if not done.exists():
        write_sources(folder, rollouts)
        done.touch()
    return sorted(folder.glob("*.jsonl"))


@dataclass(frozen=True, kw_only=True)
class Run:
    """One side."""

    name: str
    seconds: float
    cpu: float
    megabytes: float
    ids: frozenset[str]


def mixed(out: Path, sources: list[Path]) -> Run:
    shutil.rmtree(out, ignore_errors=True)
    weights = [word for path in sources for word in ("--weight", f"{path.stem}=1")]
    going_on = ["--exhausted", "all_exhausted_without_replacement"]
    paths = [str(path) for path in sources]
    seconds, cpu, megabytes, _ = watched(
        [ORCHARD, "data", "mix", *paths, *weights, *going_on, "--out", str(out)]
    )
    names = frozenset(ids(out))
    shutil.rmtree(out)
    return Run(name="ours", seconds=seconds, cpu=cpu, megabytes=megabytes, ids=names)


def ids(out: Path) -> list[str]:
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    files = sorted((out / "data").glob("*.parquet"))
    return [name for file in files for name in pq.read_table(file, columns=["id"])["id"].to_pylist()]


def peer(table: Table, variant: str, out: Path, sources: list[Path]) -> Run | None:
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, PEER, variant, str(out), *map(str, sources)]
    try:
        seconds, cpu, megabytes, said = watched(command)
    except subprocess.CalledProcessError as error:
        table.note(f"left out: datasets, {variant}: {str(error.stderr).strip().splitlines()[-1]}")
        return None
    inner = json.loads(said.strip().splitlines()[-1])["seconds"]
    without = f"{inner:.1f} s without its imports"
    table.note(f"datasets, {variant}: {seconds:.1f} s ({without}), {cpu:.1f} s of CPU, {megabytes:,.0f} MB")
    names = frozenset((out / "ids.txt").read_text().splitlines())
    shutil.rmtree(out)
    return Run(name=variant, seconds=seconds, cpu=cpu, megabytes=megabytes, ids=names)


def watched(command: list[str]) -> tuple[float, float, float, str]:
    """Seconds, seconds of CPU, megabytes at the most, and what it printed. Raises CalledProcessError."""
    began, before, most = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN), 0
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, text=True)
        while process.poll() is None:
            most = max(most, held(process.pid))
            time.sleep(0.05)
        seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        out.seek(0)
        err.seek(0)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command, stderr=err.read())
        return seconds, cpu, most / 1e6, out.read()


def held(pid: int) -> int:
    """Bytes that a process and all below it have in memory and share with no file: anonymous pages, those
    that several share counted once in proportion."""
    total, todo = 0, [pid]
    while todo:
        one = todo.pop()
        try:
            for line in Path(f"/proc/{one}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss_Anon:"):
                    total += 1024 * int(line.split()[1])
            for thread in Path(f"/proc/{one}/task").iterdir():
                todo += map(int, (thread / "children").read_text().split())
        except (OSError, ValueError):  # it has just ended
            continue
    return total


if __name__ == "__main__":
    sys.exit(main())
