"""From what lies in a sandbox to evidence, as the rollout's collect phase does it."""

from __future__ import annotations

from orchard_core.reward.blobs import MemoryBlobs
from orchard_core.reward.collect import collect
from orchard_core.reward.contract import Evidence
from orchard_core.sandbox.contract import Sandbox
from orchard_core.types.rollout import Outcome
from orchard_core.types.task import Task
from orchard_core.types.trajectory import Trajectory

ARTIFACT_LIMIT = 64 << 20
"""Largest artifact, bytes."""


async def evidence_of(
    task: Task,
    sandbox: Sandbox,
    *,
    trajectory: Trajectory | None = None,
    outcome: Outcome = Outcome.COMPLETED,
) -> Evidence:
    """What the task declared, taken from the sandbox into blobs in memory."""
    blobs = MemoryBlobs()
    artifacts = await collect(sandbox, task.artifacts, blobs, limit=ARTIFACT_LIMIT)
    return Evidence(
        task=task,
        trajectory=trajectory or Trajectory(),
        outcome=outcome,
        artifacts={artifact.path: artifact for artifact in artifacts},
        blobs=blobs,
    )
