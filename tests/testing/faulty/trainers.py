"""Trainers with one fault each."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from orchard_core import (
    Checkpoint,
    TrainRequest,
)
from orchard_core.testing import (
    FakeTrainer,
    TrainerSuite,
)


class TestAResumeFromScratch(TrainerSuite):
    caught_by = "test_resuming_what_is_done_trains_nothing"

    @pytest.fixture
    def trainer(self) -> FakeTrainer:
        class Trainer(FakeTrainer):
            async def train(self, request: TrainRequest) -> Checkpoint:
                return await super().train(dataclasses.replace(request, resume=False))

        return Trainer()


class TestAResumeThatForgetsItsState(TrainerSuite):
    caught_by = "test_a_resumed_run_equals_one_that_was_never_cut"

    @pytest.fixture
    def trainer(self) -> FakeTrainer:
        class Trainer(FakeTrainer):
            async def train(self, request: TrainRequest) -> Checkpoint:
                for state in _states(request.out) if request.resume else ():
                    state.write_text("fresh optimiser")
                return await super().train(request)

        return Trainer()


class TestASeedThatIsIgnored(TrainerSuite):
    caught_by = "test_the_same_seed_gives_the_same_model"

    @pytest.fixture
    def trainer(self) -> FakeTrainer:
        class Trainer(FakeTrainer):
            async def train(self, request: TrainRequest) -> Checkpoint:
                return await super().train(dataclasses.replace(request, seed=random.getrandbits(60)))

        return Trainer()


class TestUnknownOptionsTaken(TrainerSuite):
    caught_by = "test_a_request_that_cannot_be_met_is_refused_first"

    @pytest.fixture
    def trainer(self) -> FakeTrainer:
        class Trainer(FakeTrainer):
            async def train(self, request: TrainRequest) -> Checkpoint:
                return await super().train(dataclasses.replace(request, options={}))

        return Trainer()


def _states(out: Path) -> Iterable[Path]:
    return out.glob("step-*/state")
