"""From what lies in a sandbox to evidence, as the rollout's collect phase does it."""

from __future__ import annotations

from orchard_core.reward.artifacts import collect
from orchard_core.reward.contract import Evidence
from orchard_core.sandbox.contract import Sandbox
from orchard_core.testing.fakes.blobs import FakeBlobs
from orchard_core.types.rollout import Outcome
from orchard_core.types.task import Task
from orchard_core.types.trajectory import Trajectory


async def evidence_of(
    task: Task,
    sandbox: Sandbox,
    *,
    trajectory: Trajectory | None = None,
    outcome: Outcome = Outcome.COMPLETED,
) -> Evidence:
    """What the task declared, taken from the sandbox into blobs in memory."""
    blobs = FakeBlobs()

    async def store(sha256: str, data: bytes) -> None:
        blobs.add(data)

    return Evidence(
        task=task,
        trajectory=trajectory or Trajectory(),
        outcome=outcome,
        artifacts=await collect(sandbox, task.artifacts, store),
        blobs=blobs,
    )
