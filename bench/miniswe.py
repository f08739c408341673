"""mini-swe-agent here beside its own local run of the same scripted conversation: `python -m bench miniswe`.

The peer is the stock package as its users run it: its agent, litellm, its local environment, in a process of
its own; both ask the same gateway. A second peer leaves litellm out, for comparison only. What the sandbox's
own exec costs over a bare subprocess is measured in the same run and allowed on top.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.table import Table, at_most, options, run_as_product
from orchard_core import (
    Gateway,
    Limits,
    Sandbox,
    SessionContext,
    Task,
    Trajectory,
    load_harness,
    open_sandbox,
)
from orchard_core.gateway.expand import conversations
from orchard_core.gateway.scripted import Reply, ReplyCall, ScriptedModel

STOCK = Path(__file__).parents[1] / "plugins" / "harness_miniswe" / "tests" / "stock_run.py"
TARGET = 1.15
TASK = "Count the lines of every file and write the sum into sum.txt."
COMMAND = "echo step >> log; wc -l log; echo told >&2"
END = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


@dataclass(frozen=True, kw_only=True)
class Ran:
    """One run."""

    seconds: float
    """From the first question to the end."""
    recorded: Trajectory
    """What the gateway recorded."""


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--turns", type=int, default=50)
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    table = Table("miniswe", as_json=given.json)
    differences = run_as_product(lambda: compare(table, given.turns, given.repeat))
    code = table.end()
    return code or min(differences, 1)


async def compare(table: Table, turns: int, repeat: int) -> int:
    """Measure both, in turns, so that a busy machine hits both alike. Gives the count of differences."""
    ours, stock, light, costs = [], [], [], []
    for _ in range(repeat + 1):  # the first round warms up
        stock.append(await run_stock(turns, "litellm"))
        light.append(await run_stock(turns, "requests"))
        async with open_sandbox("local") as sandbox:
            ours.append(await run_ours(turns, sandbox))
        async with open_sandbox("local") as sandbox:
            costs.append(await exec_cost_s(sandbox, turns))
    mine, theirs, lightest = (
        statistics.median(ran.seconds for ran in runs[1:]) for runs in (ours, stock, light)
    )
    cost = max(statistics.median(costs[1:]), 0.0)
    name = f"mini-swe-agent, {turns} turns"
    allowed = at_most((TARGET * theirs + cost) * 1000)
    table.row(name, mine * 1000, "ms", peer="its own local run", beside=theirs * 1000, asked=allowed)
    table.row(name, mine * 1000, "ms", peer="the same without litellm", beside=lightest * 1000)
    lines = list(
        difflib.unified_diff(sent(stock[-1].recorded), sent(ours[-1].recorded), "stock", "ours", lineterm="")
    )
    table.note(f"allowed: {TARGET} x the peer and {cost * 1000:.1f} ms that the sandbox's own exec costs")
    count = sum(line[:1] in "+-" for line in lines[2:])
    table.row(
        "messages sent that differ", count, "lines", peer="its own local run", beside=0, asked=at_most(0)
    )
    for line in lines[:40]:
        table.note(line)
    return count


def scripted(turns: int) -> ScriptedModel:
    """Asks for `turns` commands, then submits."""
    said = [*[COMMAND] * turns, END]
    return ScriptedModel(
        [
            Reply(
                text=f"Step {n}.",
                calls=(ReplyCall(name="bash", arguments=json.dumps({"command": command}), id=f"c{n}"),),
            )
            for n, command in enumerate(said)
        ],
        name="fake",
    )


async def run_ours(turns: int, sandbox: Sandbox) -> Ran:
    """The harness, in this process."""
    task = Task(id="bench", taskset="bench", instruction=TASK)
    harness = load_harness("miniswe")
    async with Gateway() as gateway:
        session = await gateway.open_session(scripted(turns), SessionContext(task=task))
        began = time.perf_counter()
        result = await harness.run(task, sandbox, session.endpoint, [], Limits())
        spent = time.perf_counter() - began
        assert result.stop == "submitted", result
        return Ran(seconds=spent, recorded=await session.close())


async def run_stock(turns: int, way: str) -> Ran:
    """The stock package, in a process of its own that measures itself, imports left out."""
    with tempfile.TemporaryDirectory(prefix="orchard-bench-") as folder:
        async with Gateway() as gateway:
            session = await gateway.open_session(scripted(turns), SessionContext())
            where = session.endpoint
            process = await asyncio.create_subprocess_exec(
                sys.executable, str(STOCK), where.base_url, where.api_key, "mini.yaml", folder, TASK,
                f"{folder}/out.traj.json", way, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
            told, problems = await process.communicate()
            assert process.returncode == 0, problems.decode()
            return Ran(seconds=float(told.split()[-1]), recorded=await session.close())


async def exec_cost_s(sandbox: Sandbox, count: int) -> float:
    """Seconds that so many commands take longer in the sandbox than as plain subprocesses."""
    began = time.perf_counter()
    for _ in range(count):
        await sandbox.exec("true")
    inside = time.perf_counter() - began
    began = time.perf_counter()
    for _ in range(count):
        subprocess.run("true", shell=True, check=True, capture_output=True, start_new_session=True)
    return inside - (time.perf_counter() - began)


def sent(trajectory: Trajectory) -> Sequence[str]:
    """Every message of every request, as lines."""
    full = conversations(trajectory)
    return [
        json.dumps({"call": call.index, **json.loads(trajectory.messages[key].raw)}, sort_keys=True)
        for call in trajectory.calls
        for key in full[call.index]
    ]


if __name__ == "__main__":
    sys.exit(main())
