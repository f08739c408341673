"""What a whole rollout costs beside the bare calls it is made of.

    python bench/rollout.py [--rollouts 200] [--turns 10] [--concurrency 200] [--sandbox local] [--json]

Ceiling: the same number of sandboxes, and in each the same commands by bare `sandbox.exec` and the same
requests, byte for byte, by bare HTTP posts to a gateway session with an instant model. Measured: the same
through `run_rollouts` with the react harness: phases, deadlines, tools, recording, reward, a durable store.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import aiohttp

from bench.table import Of, Table, at_least, options, run_as_product
from orchard_core import Limits, Model, Rollout, SandboxProvider, SessionContext, Task
from orchard_core.gateway.scripted import Reply, ReplyCall, ScriptedModel
from orchard_core.gateway.server import Gateway
from orchard_core.plugins.lookup import load_harness, load_provider
from orchard_core.rollout.front import run_rollouts
from orchard_core.testing import FakeTaskSet

TARGET = 0.70
COMMAND = "echo ready"


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--rollouts", type=int, default=200)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--concurrency", type=int, default=200)
    parser.add_argument("--sandbox", default="local")
    parser.add_argument("--repeat", type=int, default=2)
    given = parser.parse_args()
    table = Table("rollout", as_json=given.json)
    run_as_product(lambda: compare(table, given))
    return table.end()


async def compare(table: Table, given: argparse.Namespace) -> None:
    """Measure both, alternating so that a busy machine hits both alike."""
    model = instant_model(given.turns)
    bodies = await recorded_bodies(given, model)
    bare, whole = [], []
    for _ in range(given.repeat):
        bare.append(await measure_bare(given, model, bodies))
        whole.append(await measure_whole(given, model))
    name = f"turns of {given.rollouts} rollouts"
    peer = "bare exec and bare gateway calls"
    table.row(name, max(whole), "1/s", peer=peer, beside=max(bare), asked=at_least(TARGET, Of.RATIO))
    table.note(f"{given.turns} turns each, {given.concurrency} at once, on {given.sandbox}")


def instant_model(turns: int) -> Model:
    """Asks for `turns` commands, then submits."""
    act = Reply(text="Look.", calls=(ReplyCall(name="bash", arguments=json.dumps({"command": COMMAND})),))
    end = Reply(text="Done.", calls=(ReplyCall(name="submit", arguments='{"answer": "done"}'),))
    return ScriptedModel([*[act] * turns, end])


async def recorded_bodies(given: argparse.Namespace, model: Model) -> list[bytes]:
    """The requests that one real rollout makes."""
    [rollout] = await run_all(argparse.Namespace(**{**vars(given), "rollouts": 1, "concurrency": 1}), model)
    trajectory = rollout.trajectory
    whole: dict[int, list[str]] = {}
    bodies = []
    for call in trajectory.calls:
        refs = call.messages
        kept = whole[refs.base][: refs.keep] if refs.base is not None else []
        whole[call.index] = [*kept, *refs.added]
        messages = ",".join(trajectory.messages[name].raw for name in whole[call.index])
        tools = f',"tools":{trajectory.blobs[call.tools]}' if call.tools else ""
        bodies.append(f'{{"model":"{model.name}","messages":[{messages}]{tools}}}'.encode())
    assert len(bodies) == given.turns + 1
    return bodies


async def measure_bare(given: argparse.Namespace, model: Model, bodies: Sequence[bytes]) -> float:
    """Turns a second of nothing but the calls."""
    provider = load_provider(given.sandbox)
    tasks = list(FakeTaskSet.of(given.rollouts).tasks())
    slots = asyncio.Semaphore(given.concurrency)
    try:
        async with Gateway() as gateway:
            began = time.perf_counter()
            await asyncio.gather(
                *(bare_rollout(task, provider, gateway, model, bodies, slots) for task in tasks)
            )
            return float(given.rollouts * given.turns) / (time.perf_counter() - began)
    finally:
        await provider.close()


async def bare_rollout(
    task: Task,
    provider: SandboxProvider,
    gateway: Gateway,
    model: Model,
    bodies: Sequence[bytes],
    slots: asyncio.Semaphore,
) -> None:
    spec = FakeTaskSet.of(1).spec(task)
    async with slots, await provider.create(spec) as sandbox:
        session = await gateway.open_session(model, SessionContext(task=task), limits=Limits())
        headers = {
            "Authorization": f"Bearer {session.endpoint.api_key}",
            "Content-Type": "application/json",
        }
        async with aiohttp.ClientSession(headers=headers) as http:
            for number, body in enumerate(bodies):
                async with http.post(f"{session.endpoint.base_url}/chat/completions", data=body) as answer:
                    assert answer.status == 200, await answer.text()
                    await answer.read()
                if number < len(bodies) - 1:
                    assert (await sandbox.exec(COMMAND)).ok
        await session.close()


async def measure_whole(given: argparse.Namespace, model: Model) -> float:
    """Turns a second of whole rollouts."""
    began = time.perf_counter()
    rollouts = await run_all(given, model)
    spent = time.perf_counter() - began
    failed = [rollout for rollout in rollouts if len(rollout.trajectory.calls) != given.turns + 1]
    assert not failed, failed[0].error
    return float(given.rollouts * given.turns) / spent


async def run_all(given: argparse.Namespace, model: Model) -> list[Rollout]:
    harness = load_harness("react")
    taskset = FakeTaskSet(list(FakeTaskSet.of(given.rollouts).tasks()))
    with tempfile.TemporaryDirectory(prefix="orchard-bench-") as folder:
        rollouts = run_rollouts(
            taskset,
            harness=harness,
            model=model,
            sandbox=given.sandbox,
            concurrency=given.concurrency,
            out=Path(folder) / "run",
        )
        return [rollout async for rollout in rollouts]


if __name__ == "__main__":
    sys.exit(main())
