"""Durable rollouts a second, beside the floor: the same bytes written raw and synced in batches.

    python bench/store.py [--seconds 4] [--dir DIRECTORY] [--json]

Each rollout has 30 turns with token ids and log-probabilities and takes about 100 KB compressed. 64 finish at
a time, each waiting until it is durable, as rollouts of a real run do.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.table import Table, at_least, options, run_as_product
from orchard_core import (
    Attribution,
    CallTimings,
    Dialect,
    HarnessResult,
    Message,
    MessageRefs,
    ModelCall,
    Outcome,
    Provenance,
    RewardResult,
    Rollout,
    StopReason,
    Task,
    TokenRefs,
    Trajectory,
    Usage,
)
from orchard_core.rollout.config import RunConfig
from orchard_core.rollout.store.frame import pack, to_json
from orchard_core.rollout.store.writer import RunWriter

TURNS, AT_ONCE, TARGET = 30, 64, 300
PROMPT_TOKENS, ANSWER_TOKENS = 220, 130


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--dir", type=Path, default=None)
    given = parser.parse_args()
    table = Table("store", as_json=given.json)
    rollouts = [make_rollout(number) for number in range(16)]
    frames = [pack(to_json(rollout)) for rollout in rollouts]
    size = sum(map(len, frames)) / len(frames)
    raw = sum(len(to_json(rollout)) for rollout in rollouts) / len(rollouts)
    with tempfile.TemporaryDirectory(dir=given.dir, prefix="orchard-bench-") as folder:
        before = time.process_time()
        rate, batch = run_as_product(lambda: measure_store(Path(folder), rollouts, given.seconds))
        cost = (time.process_time() - before) / (rate * given.seconds)
        floor = measure_floor(Path(folder) / "floor", frames, given.seconds, batch)
    floor_name = f"raw frames, synced by {batch}"
    table.row("durable rollouts", rate, "1/s", peer=floor_name, beside=floor, asked=at_least(TARGET))
    table.note(
        f"a rollout: {TURNS} turns, {raw / 1000:.0f} KB as JSON, {size / 1000:.0f} KB compressed, "
        f"{cost * 1000:.2f} ms of CPU, so {1 / cost:.0f}/s for each free core"
    )
    return table.end()


async def measure_store(root: Path, rollouts: list[Rollout], seconds: float) -> tuple[float, int]:
    """Rollouts a second, and how many shared one sync on average."""
    config = RunConfig(taskset="b", harness="b", harness_version="1", model="b", sandbox="b")
    finished = 0
    async with await RunWriter.open(root / "run", config) as writer:
        began = time.perf_counter()
        numbers = iter(range(10**9))

        async def one() -> None:
            nonlocal finished
            while time.perf_counter() - began < seconds:
                number = next(numbers)
                rollout = rollouts[number % len(rollouts)]
                await writer.finish(rollout.model_copy(update={"id": f"{number:020x}"}))
                finished += 1

        await asyncio.gather(*(one() for _ in range(AT_ONCE)))
        spent = time.perf_counter() - began
        return finished / spent, max(1, round(finished / writer.commits))


def measure_floor(path: Path, frames: list[bytes], seconds: float, batch: int) -> float:
    """Frames a second."""
    count = 0
    with path.open("wb", buffering=0) as out:
        began = time.perf_counter()
        while time.perf_counter() - began < seconds:
            for _ in range(batch):
                out.write(frames[count % len(frames)])
                count += 1
            os.fdatasync(out.fileno())
        return count / (time.perf_counter() - began)


def make_rollout(seed: int) -> Rollout:
    """A trajectory like one of a real model: text, ids and log-probabilities that differ everywhere."""
    draw = random.Random(seed)
    messages: dict[str, Message] = {}
    calls = tuple(_call(turn, draw, messages) for turn in range(TURNS))
    trajectory = Trajectory(calls=calls, messages=messages)
    return Rollout(
        id=f"{seed:020x}",
        task=Task(id=f"task-{seed}", taskset="b", instruction="x" * 500),
        harness="b",
        model="b",
        outcome=Outcome.COMPLETED,
        attribution=Attribution.AGENT,
        result=HarnessResult(stop=StopReason.SUBMITTED, turns=TURNS),
        reward=RewardResult(score=1.0),
        trajectory=trajectory,
        usage=trajectory.usage,
        cost_usd=0.0,
        started_at=0.0,
        finished_at=1.0,
        provenance=Provenance(orchard="0", harness="b", model="b", provider="b", image="host"),
    )


def _call(turn: int, draw: random.Random, messages: dict[str, Message]) -> ModelCall:
    names = [f"{draw.getrandbits(256):064x}" for _ in range(2)]
    for name, role, words in zip(names, ("user", "assistant"), (PROMPT_TOKENS, ANSWER_TOKENS), strict=True):
        text = " ".join(_words(draw, words))
        messages[name] = Message(role=role, raw=f'{{"role":"{role}","content":"{text}"}}')
    return ModelCall(
        index=turn,
        dialect=Dialect.CHAT,
        messages=MessageRefs(base=turn - 1 if turn else None, keep=2 * turn, added=(names[0],)),
        response=names[1],
        finish_reason="stop",
        prompt_tokens=TokenRefs(
            base=turn - 1 if turn else None,
            keep=turn * (PROMPT_TOKENS + ANSWER_TOKENS),
            added=tuple(draw.randrange(150_000) for _ in range(PROMPT_TOKENS)),
        ),
        completion_tokens=tuple(draw.randrange(150_000) for _ in range(ANSWER_TOKENS)),
        logprobs=tuple(-draw.expovariate(2.0) for _ in range(ANSWER_TOKENS)),
        usage=Usage(input=PROMPT_TOKENS, output=ANSWER_TOKENS),
        cost_usd=0.0,
        timings=CallTimings(started_at=float(turn)),
    )


def _words(draw: random.Random, count: int) -> Iterator[str]:
    letters = "etaoinshrdlucmfwyp"
    for _ in range(count):
        yield "".join(draw.choices(letters, k=draw.randrange(2, 9)))


if __name__ == "__main__":
    sys.exit(main())
