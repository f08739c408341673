"""The default reward honours the reward suite, in real sandboxes."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchard_core import (
    Evidence,
    Outcome,
    SandboxProvider,
    SandboxSpec,
    Task,
    Trajectory,
)
from orchard_core.reward.script import ScriptReward, VerifierScript
from orchard_core.testing import ANSWER_PATH, FakeBlobs, RewardSuite, provider_or_skip

TEST = """#!/bin/sh
if [ "$(cat /workspace/answer.txt)" = 42 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""


class TestScriptReward(RewardSuite):
    async def make_provider(self) -> SandboxProvider:
        return await provider_or_skip()

    @pytest.fixture
    def reward(self, tmp_path: Path) -> ScriptReward:
        (tmp_path / "test.sh").write_text(TEST)
        return ScriptReward(VerifierScript(directory=tmp_path, digest="1"), SandboxSpec())

    @pytest.fixture
    def solved(self) -> Evidence:
        return _evidence(b"42\n")

    @pytest.fixture
    def failed(self) -> Evidence:
        return _evidence(b"41\n")


def _evidence(answer: bytes) -> Evidence:
    blobs = FakeBlobs()
    artifact = blobs.file(ANSWER_PATH, answer)
    task = Task(id="t", taskset="suite", instruction="Write 42.", artifacts=(ANSWER_PATH,))
    return Evidence(
        task=task,
        trajectory=Trajectory(),
        outcome=Outcome.COMPLETED,
        artifacts={ANSWER_PATH: artifact},
        blobs=blobs,
    )
