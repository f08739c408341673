"""The fakes honour the suites that real plugins are held to."""

from __future__ import annotations

import pytest

from orchard_core import Evidence, Outcome, Task, Trajectory
from orchard_core.testing import (
    ANSWER_PATH,
    FakeBlobs,
    FakeModel,
    FakeReply,
    FakeReward,
    FakeTaskSet,
    FakeTool,
    FakeTrainer,
    ModelSuite,
    RewardSuite,
    TaskSetSuite,
    TrainerSuite,
    file_holds,
)


class TestFakeTaskSet(TaskSetSuite):
    @pytest.fixture
    def taskset(self) -> FakeTaskSet:
        return FakeTaskSet.of(3)


class TestFakeTaskSetWithTools(TaskSetSuite):
    solvable = False

    @pytest.fixture
    def taskset(self) -> FakeTaskSet:
        task = Task(id="only", taskset="fake", instruction="Echo.", digest="1")
        return FakeTaskSet([task], tools=[FakeTool(), FakeTool("again")])


class TestFakeReward(RewardSuite):
    @pytest.fixture
    def reward(self) -> FakeReward:
        return FakeReward(file_holds(ANSWER_PATH, b"42"))

    @pytest.fixture
    def solved(self) -> Evidence:
        return _evidence(b"42")

    @pytest.fixture
    def failed(self) -> Evidence:
        return _evidence(b"41")


class TestFakeModel(ModelSuite):
    @pytest.fixture
    def model(self) -> FakeModel:
        return FakeModel([FakeReply.call("bash", text="I look first.", command="ls -la")])


class TestFakeTrainer(TrainerSuite):
    @pytest.fixture
    def trainer(self) -> FakeTrainer:
        return FakeTrainer()


def _evidence(answer: bytes) -> Evidence:
    blobs = FakeBlobs()
    artifact = blobs.file(ANSWER_PATH, answer)
    task = Task(id="t", taskset="fake", instruction="Write 42.", artifacts=(ANSWER_PATH,))
    return Evidence(
        task=task,
        trajectory=Trajectory(),
        outcome=Outcome.COMPLETED,
        artifacts={ANSWER_PATH: artifact},
        blobs=blobs,
    )
