"""Things with nothing wrong."""

from __future__ import annotations

from typing import Any

from orchard_core import (
    Evidence,
    Outcome,
    Task,
    Trajectory,
)
from orchard_core.testing import (
    ANSWER_PATH,
    FakeBlobs,
)


def task(**fields: Any) -> Task:
    """A task with nothing wrong but what `fields` say."""
    given = {"id": "t", "taskset": "fake", "instruction": "Write 42.", "digest": "1", **fields}
    return Task.model_validate(given)


def evidence(answer: bytes) -> Evidence:
    """What an agent left that answered so."""
    blobs = FakeBlobs()
    artifact = blobs.file(ANSWER_PATH, answer)
    return Evidence(
        task=task(artifacts=(ANSWER_PATH,)),
        trajectory=Trajectory(),
        outcome=Outcome.COMPLETED,
        artifacts={ANSWER_PATH: artifact},
        blobs=blobs,
    )
