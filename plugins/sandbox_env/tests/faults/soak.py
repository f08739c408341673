"""`python soak.py [--minutes 10] [--lives 12]`: traffic of several tenants on one service, with faults, in
rounds. After each round nothing stands, and what the service then has is measured: it must not grow.

Prints one line of JSON a round, and a verdict at the end; exits with 1 when something grew or was lost.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from lives import Life, Traffic  # type: ignore[import-not-found]
from orchard_env.service.tenancy.books import FileBook
from orchard_env.service.tenancy.issuing import create_key, set_tenant

TENANTS = ("ada", "bob", "cy")
QUOTA = 4
FLAT_KB = 1.0
"""Memory grows by less than this for each sandbox that was, by the line fitted to the last half: by less than
4 MB in two hours' worth of some four thousand. The smallest thing of a sandbox's that could be forgotten, its
client with its connections, is several times that."""
JOBS_MB, RUNS = 1, 512
"""What is kept on purpose, of ended jobs and of what was counted, is bounded: by so little that it is full by
the last half."""
FULL_LIVES = 1200
"""So many there are at least, a half of them measured: on a slow machine the soak takes longer. A leak of
3 kB is then told from what goes up and down."""
SURE = 3.0
"""A figure grows when its line does by more than its limit and so many standard errors of its own: what is
measured at rest goes up and down, and the fewer sandboxes there were, the less the line says."""
LIMITS = {"rss_mb": FLAT_KB / 1024, "descriptors": 0.002, "threads": 0.002, "children": 0.001, "files": 0.002}
"""For each sandbox."""
SETTLE_S = 120.0


@dataclass(frozen=True, kw_only=True)
class Rest:
    """What the service has when nothing stands."""

    at_s: float
    """Since the beginning."""
    lives: int
    """Sandboxes that were, so far, without forks."""
    rss_mb: float
    """Its memory."""
    descriptors: int
    """It has open."""
    threads: int
    """Of it."""
    children: int
    """Processes below it."""
    files: int
    """Below its directory for sandboxes."""


@dataclass
class Told:
    """What came of it."""

    rests: list[Rest] = field(default_factory=list)
    """One of each round."""
    counts: Counter[str] = field(default_factory=Counter)
    """What was done, and what went wrong on purpose."""
    faults: list[str] = field(default_factory=list)
    """What must not be."""


def per_sandbox(rests: list[Rest], name: str) -> tuple[float, float]:
    """By how much a figure grows with each sandbox, by the line fitted to the last half of the rounds, and
    the standard error of that."""
    steady = rests[len(rests) // 2 :]
    if len(steady) < 3:
        return 0.0, 0.0
    lives = [float(rest.lives) for rest in steady]
    figures = [float(getattr(rest, name)) for rest in steady]
    slope, start = statistics.linear_regression(lives, figures)
    missed = sum((figure - start - slope * x) ** 2 for x, figure in zip(lives, figures, strict=True))
    spread = statistics.pvariance(lives) * len(lives)
    return slope, math.sqrt(missed / (len(steady) - 2) / spread)


def verdict(told: Told) -> list[str]:
    """What must not be, in words; empty when all is well."""
    wrong = list(told.faults)
    for name, limit in LIMITS.items():
        more, error = per_sandbox(told.rests, name)
        if more - SURE * error > limit:
            wrong.append(f"{name} grows by {more:.5f} with each sandbox, give or take {error:.5f}")
    return wrong


async def keys_of(path: Path) -> dict[str, str]:
    """Tenants with a small quota each, and a key."""
    book = FileBook(path)
    found = {}
    for tenant in TENANTS:
        found[tenant] = (await create_key(book, tenant)).text
        await set_tenant(book, tenant, limits={"sandboxes": QUOTA})
    return found


def below(pid: int) -> set[int]:
    """All processes that a process started, and theirs."""
    try:
        text = "".join(path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children"))
    except OSError:
        return set()
    own = {int(word) for word in text.split()}
    return own.union(*map(below, own))


def rest_of(pid: int, state: Path, began: float, lives: int) -> Rest:
    """Measured now."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return Rest(
        at_s=round(time.monotonic() - began, 1),
        lives=lives,
        rss_mb=round(int(status["VmRSS"].split()[0]) / 1024, 1),
        descriptors=len([*Path(f"/proc/{pid}/fd").iterdir()]),
        threads=int(status["Threads"]),
        children=len(below(pid)),
        files=sum(1 for _ in state.rglob("*")),
    )


async def settled(pid: int, traffic: Traffic, told: Told) -> None:
    """Until nothing stands, by every book there is; what still does after a while is told as a fault."""
    ends = time.monotonic() + SETTLE_S
    while (left := await traffic.left()) or below(pid):
        if time.monotonic() > ends:
            told.faults.append(f"left standing: {left}, processes {len(below(pid))}")
            return
        await asyncio.sleep(0.2)


async def soak(minutes: float, lives: int, seed: int, least: int = FULL_LIVES) -> Told:
    """Run it, until `least` sandboxes were. The service is ended by SIGTERM, and leaves nothing."""
    told, chance = Told(), random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="orchard-soak-", dir="/var/tmp") as folder:
        root = Path(folder)
        keys = await keys_of(root / "keys.json")
        state = root / "state"
        state.mkdir()
        config = {
            "provider": {"state_dir": str(state)},
            "service": {"ttl_s": 600, "jobs_mb": JOBS_MB},
            "observe": {"runs": RUNS},
        }
        (root / "serve.yaml").write_text(json.dumps(config))
        serve = ("-m", "orchard_core.cli.main", "serve", "--provider", "local", "--port", "0", "--json",
                 "--keys", str(root / "keys.json"), "--config", str(root / "serve.yaml"),
                 "--audit", str(root / "audit.jsonl"))  # fmt: skip
        with (root / "log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable, *serve, stdout=asyncio.subprocess.PIPE, stderr=log
            )
        try:
            assert process.stdout is not None
            url = str(json.loads(await process.stdout.readline())["url"])
            await _rounds(url, keys, process.pid, state, minutes, lives, least, told, chance)
            process.send_signal(signal.SIGTERM)
            code = await asyncio.wait_for(process.wait(), 60)
            if code:
                told.faults.append(f"the service ended with {code}")
            for line in (root / "log").read_text().splitlines():
                if line.startswith("Traceback") or '"level":"error"' in line:
                    told.faults.append(f"the log says: {line[:300]}")
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    return told


async def _rounds(
    url: str,
    keys: dict[str, str],
    pid: int,
    state: Path,
    minutes: float,
    lives: int,
    least: int,
    told: Told,
    chance: random.Random,
) -> None:
    began = time.monotonic()
    own = os.urandom(4).hex()  # agents are killed by their sandbox's name: another soak has other names
    async with Traffic(url, keys, told.counts) as traffic:
        while time.monotonic() - began < minutes * 60 or len(told.rests) * lives < least:
            number = len(told.rests)
            living = [
                Life(traffic, TENANTS[n % len(TENANTS)], f"{own}-{number}-{n}", chance.getrandbits(32))
                for n in range(lives)
            ]
            for came in await asyncio.gather(*(life.live() for life in living), return_exceptions=True):
                if isinstance(came, BaseException):
                    told.faults.append(f"{type(came).__name__}: {came}")
            await settled(pid, traffic, told)
            told.rests.append(rest_of(pid, state, began, (number + 1) * lives))
            sys.stdout.write(json.dumps({"round": number, **asdict(told.rests[-1])}) + "\n")
            sys.stdout.flush()


def main() -> int:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long")
    parser.add_argument("--lives", type=int, default=12, help="sandboxes of one round, at once")
    parser.add_argument("--least", type=int, default=FULL_LIVES, help="sandboxes of all rounds, however long")
    parser.add_argument("--seed", type=int, default=0, help="of all that is left to chance")
    given = parser.parse_args()
    told = asyncio.run(soak(given.minutes, given.lives, given.seed, given.least))
    wrong = verdict(told)
    figures = {name: [round(figure, 6) for figure in per_sandbox(told.rests, name)] for name in LIMITS}
    sys.stdout.write(json.dumps({"counts": told.counts, "per_sandbox": figures, "wrong": wrong[:20]}) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
