"""The contract suite of each kind, bound to one subject. pytest collects what `suite_of` makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from orchard_core.formats.contract import DatasetFormat
from orchard_core.gateway.contract import Model
from orchard_core.harness.contract import Harness
from orchard_core.plugins import lookup
from orchard_core.reward.contract import Reward
from orchard_core.rollout.workers.contract import Workforce
from orchard_core.rollout.workers.finding import load_workforce
from orchard_core.sandbox.contract import SandboxProvider
from orchard_core.tasks.contract import TaskSet
from orchard_core.testing.fakes.provider import FakeProvider
from orchard_core.testing.isolation import provider_or_skip
from orchard_core.testing.suites.example_reward import ExampleRewardSuite
from orchard_core.testing.suites.format import FormatSuite
from orchard_core.testing.suites.harness.suite import HarnessSuite
from orchard_core.testing.suites.model.model import ModelSuite
from orchard_core.testing.suites.sandbox.suite import SandboxSuite
from orchard_core.testing.suites.taskset import TaskSetSuite
from orchard_core.testing.suites.trainer import TrainerSuite
from orchard_core.testing.suites.workforce import WorkforceSuite
from orchard_core.trainer.contract import Trainer
from orchard_core.types.check import Subject
from orchard_core.types.plugin import PluginKind


def suite_of(subject: Subject) -> type:
    """The suite as a class of tests."""
    return _SUITES[subject.kind](subject)


async def _provider(subject: Subject) -> SandboxProvider:
    return FakeProvider() if subject.sandbox == "fake" else await provider_or_skip(subject.sandbox)


def _harness(subject: Subject) -> type:
    class Checked(HarnessSuite):
        async def make_provider(self) -> SandboxProvider:
            return await _provider(subject)

        @pytest.fixture
        def harness(self) -> Harness:
            return lookup.load_harness(subject.spec, **subject.options)

    return Checked


def _sandbox(subject: Subject) -> type:
    class Checked(SandboxSuite):
        async def make_provider(self) -> SandboxProvider:
            return lookup.load_provider(subject.spec, **subject.options)

    return Checked


def _taskset(subject: Subject) -> type:
    class Checked(TaskSetSuite):
        async def make_provider(self) -> SandboxProvider:
            return await _provider(subject)

        @pytest.fixture
        def taskset(self) -> TaskSet:
            return lookup.load_taskset(subject.spec, **subject.options)

    return Checked


def _reward(subject: Subject) -> type:
    class Checked(ExampleRewardSuite):
        async def make_provider(self) -> SandboxProvider:
            return await _provider(subject)

        @pytest.fixture
        def reward(self) -> Reward:
            return lookup.load_reward(subject.spec, **subject.options)

    return Checked


def _trainer(subject: Subject) -> type:
    class Checked(TrainerSuite):
        options = subject.options

        @pytest.fixture
        def policy(self) -> str:
            return subject.policy

        @pytest.fixture
        def trainer(self) -> Trainer:
            return lookup.load_trainer(subject.spec)

    return Checked


def _model(subject: Subject) -> type:
    class Checked(ModelSuite):
        @pytest.fixture
        def model(self) -> Model:
            return lookup.load_model(subject.spec, **subject.options)

    return Checked


def _format(subject: Subject) -> type:
    class Checked(FormatSuite):
        @pytest.fixture
        def dataset_format(self) -> DatasetFormat:
            return lookup.load_format(subject.spec, **subject.options)

    return Checked


def _workforce(subject: Subject) -> type:
    class Checked(WorkforceSuite):
        sandbox = "local" if subject.sandbox == "fake" else subject.sandbox

        @pytest.fixture
        def workforce(self) -> Workforce:
            return load_workforce(subject.spec, **subject.options)

    return Checked


_SUITES: Mapping[PluginKind, Callable[[Subject], type]] = {
    PluginKind.HARNESS: _harness,
    PluginKind.SANDBOX: _sandbox,
    PluginKind.TASKSET: _taskset,
    PluginKind.REWARD: _reward,
    PluginKind.TRAINER: _trainer,
    PluginKind.MODEL: _model,
    PluginKind.FORMAT: _format,
    PluginKind.WORKFORCE: _workforce,
}
