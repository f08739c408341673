"""Pages of `orchard view` on 10,000 rollouts: milliseconds a page, beside reading the same records plainly.

    python bench/view.py [--tasks 250] [--repeat 9] [--json]

A matrix of 5 harnesses by 2 models, 250 tasks, 4 attempts, written by the real store, and beside it a run
whose rollouts have 60 turns and 64,000 tokens with log-probabilities. The pages are served as the command
does it and asked for over HTTP. Each figure is the median; each long rollout is read for the first time.
Floors: `json.loads` of each line of the same journals, which is the least that a list of them costs that
keeps nothing, and unpacking and `json.loads` of the same record.
"""

from __future__ import annotations

import io
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import aiohttp
import zstandard

from bench.report import write_matrix
from bench.store import make_rollout
from bench.table import Table, at_most, options, run_as_product
from orchard_core import Message, MessageRefs, ModelCall, Rollout, TokenRefs, Trajectory, open_run
from orchard_core.rollout.config import RunConfig
from orchard_core.rollout.store.entry import Planned
from orchard_core.rollout.store.writer import RunWriter
from orchard_core.viewer.search.writing import bring_up_to_date
from orchard_core.viewer.serve import serving
from orchard_core.viewer.sources.shelf import Shelf

ASKED = 300
"""Milliseconds that a page may take."""
TURNS, PROMPT, ANSWER, LONG = 60, 700, 367, 20
WORDS = ("total", "row", "file", "error", "path", "value", "loop", "test", "read", "write", "column", "index")


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--tasks", type=int, default=250)
    parser.add_argument("--repeat", type=int, default=9)
    given = parser.parse_args()
    table = Table("view", as_json=given.json)
    with tempfile.TemporaryDirectory(prefix="orchard-bench-") as folder:
        run_as_product(lambda: measure(table, Path(folder), given.tasks, given.repeat))
    return table.end()


async def measure(table: Table, folder: Path, tasks: int, repeat: int) -> None:
    """Every kind of page once for each row of the table."""
    matrix, long = folder / "matrix", folder / "long"
    count = await write_matrix(matrix, tasks)
    await write_long(long)
    shelf = Shelf.open([matrix, long])
    bring_up_to_date(shelf.sources[1], folder / "cache")
    began = time.perf_counter()
    for source in shelf.sources:
        source.lines()
    table.note(f"opening {count:,} rollouts, once: {(time.perf_counter() - began) * 1000:.0f} ms")
    lines, record = scan_ms(matrix), record_ms(long)
    async with (
        serving(shelf, index=True, cache=folder / "cache") as door,
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http,
    ):
        async with http.get(door.link) as answer:
            assert answer.status == 200
        base = door.link.split("/?")[0]
        one = shelf.sources[0].lines().lines[count // 2].address
        two = [line.address for line in shelf.sources[1].lines().lines]
        each = f"json.loads of {count:,} lines"
        for name, path in {
            "what is open": "/",
            f"list of {count:,}": "/1/",
            "list, filtered and sorted": "/1/?harness=react&score=failed&sort=-tokens",
            "list, last page": f"/1/?page={count // 100}",
            "list, text search": "/1/?q=django__django-10042",
            "matrix as a grid": "/1/matrix",
            "one of them": f"{one}?in=matrix",
        }.items():
            value, size = await page_ms(http, base, cycle([path]), repeat)
            table.row(name, value, "ms", peer=each, beside=lines, asked=at_most(ASKED))
        fresh = cycle(two)
        pairs = (f"/compare?a={one}&b={other}" for one, other in zip(fresh, fresh, strict=False))
        tokens = cycle([f"{two[0]}/tokens/30"])
        whole = "unpack and json.loads of it"
        value, size = await page_ms(http, base, fresh, repeat)
        table.row("64,000 tokens, turn by turn", value, "ms", peer=whole, beside=record, asked=at_most(ASKED))
        table.note(f"its page is {size / 1000:.0f} KB")
        value, _ = await page_ms(http, base, pairs, repeat)
        table.row("two of those side by side", value, "ms", peer=whole, beside=record, asked=at_most(ASKED))
        value, _ = await page_ms(http, base, tokens, repeat)
        table.row("tokens of one turn", value, "ms", peer=whole, beside=record, asked=at_most(ASKED))
        value, _ = await page_ms(http, base, cycle(["/2/?q=column+%22total+row%22"]), repeat)
        table.row("search in messages", value, "ms", peer=whole, beside=record, asked=at_most(ASKED))


async def page_ms(
    http: aiohttp.ClientSession, base: str, paths: Iterator[str], repeat: int
) -> tuple[float, int]:
    """Median milliseconds and the bytes of the last."""
    spent, size = [], 0
    for _ in range(repeat):
        asked = base + next(paths)
        began = time.perf_counter()
        async with http.get(asked) as answer:
            size = len(await answer.read())
            assert answer.status == 200, asked
        spent.append((time.perf_counter() - began) * 1000)
    return statistics.median(spent), size


def scan_ms(matrix: Path) -> float:
    """Milliseconds to read every journal line of a matrix as plain JSON."""
    began = time.perf_counter()
    for journal in matrix.glob("cells/*/journal.jsonl"):
        for line in journal.read_bytes().splitlines():
            json.loads(line)
    return (time.perf_counter() - began) * 1000


def record_ms(run: Path) -> float:
    """Milliseconds to unpack one record and read it as plain JSON."""
    held = open_run(run)
    entry = held.finished()[0]
    shard = (run / "shards" / f"{entry.shard:05d}.jsonl.zst").read_bytes()
    payload = shard[entry.offset + 24 : entry.offset + entry.length]
    began = time.perf_counter()
    json.loads(zstandard.ZstdDecompressor().stream_reader(io.BytesIO(payload)).read())
    return (time.perf_counter() - began) * 1000


async def write_long(root: Path) -> None:
    """A run of rollouts of 64,000 tokens, each another."""
    config = RunConfig(taskset="b", harness="b", harness_version="1", model="b", sandbox="b")
    rollouts = [long_rollout(number) for number in range(LONG)]
    async with await RunWriter.open(root, config) as writer:
        await writer.plan([Planned(id=r.id, task=r.task.id, attempt=0, seed=0) for r in rollouts])
        for rollout in rollouts:
            await writer.finish(rollout)


def long_rollout(seed: int) -> Rollout:
    draw = random.Random(seed)
    whole = make_rollout(seed)
    messages: dict[str, Message] = {}
    calls: list[ModelCall] = []
    kept = 0
    for turn in range(TURNS):
        asked, said = f"{draw.getrandbits(128):032x}", f"{draw.getrandbits(128):032x}"
        messages[asked] = message("tool" if turn else "user", draw, PROMPT)
        messages[said] = message("assistant", draw, ANSWER)
        added = (calls[-1].response or "", asked) if calls else (asked,)
        base = turn - 1 if turn else None
        new = tuple(draw.randrange(150_000) for _ in range(PROMPT))
        calls.append(
            whole.trajectory.calls[0].model_copy(
                update={
                    "index": turn,
                    "messages": MessageRefs(base=base, keep=max(0, 2 * turn - 1), added=added),
                    "response": said,
                    "prompt_tokens": TokenRefs(base=base, keep=kept, added=new),
                    "completion_tokens": tuple(draw.randrange(150_000) for _ in range(ANSWER)),
                    "logprobs": tuple(-draw.expovariate(2.0) for _ in range(ANSWER)),
                }
            )
        )
        kept += PROMPT + ANSWER
    return whole.model_copy(update={"trajectory": Trajectory(calls=tuple(calls), messages=messages)})


def message(role: str, draw: random.Random, tokens: int) -> Message:
    """About four characters a token."""
    text = " ".join(draw.choice(WORDS) for _ in range(tokens * 4 // 5))
    return Message(role=role, raw=json.dumps({"role": role, "content": text}))


if __name__ == "__main__":
    sys.exit(main())
