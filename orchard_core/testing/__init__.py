"""Fakes, contract suites and a pytest plugin for authors of plugins. Production never imports this.

Nothing is imported until it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orchard_core.testing._front import *  # noqa: F403

_MODULES = {
    "collect": ("evidence_of",),
    "fakes.blobs": ("FakeBlobs",),
    "fakes.chat": ("chat",),
    "fakes.feed": ("FakeFeed",),
    "fakes.grading": ("FakeGrading",),
    "fakes.harness": ("FakeHarness",),
    "fakes.model": ("FakeModel",),
    "fakes.process": ("FakeProcess",),
    "fakes.provider": ("FAKE_CAPABILITIES", "FakeProvider"),
    "fakes.reply": ("FakeReply",),
    "fakes.reward": ("FakeReward", "file_holds"),
    "fakes.sandbox": ("FakeSandbox",),
    "fakes.taskset": ("ANSWER_PATH", "FakeTaskSet"),
    "fakes.tool": ("FakeTool",),
    "fakes.trainer": ("FakeTrainer",),
    "fakes.upstream": ("FakeUpstream",),
    "isolation": ("provider_or_skip", "skip_without_isolation"),
    "suites.example_reward": ("ExampleRewardSuite",),
    "suites.format": ("FormatSuite",),
    "suites.harness.stage": ("Played", "Stage", "stage", "steps"),
    "suites.harness.suite": ("HarnessSuite",),
    "suites.model.http_upstream": ("HttpUpstreamSuite",),
    "suites.model.model": ("ModelSuite",),
    "suites.model.server": ("Behaviour", "ModelServer", "model_server"),
    "suites.model.upstream": ("UpstreamSuite",),
    "suites.reward": ("RewardSuite",),
    "suites.sandbox.suite": ("SandboxSuite",),
    "suites.taskset": ("TaskSetSuite",),
    "suites.trainer": ("TrainerSuite",),
    "suites.workforce": ("WorkforceSuite",),
}
"""Where each public name lives, below this package."""

_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_HOME)  # noqa: PLE0605 - a test holds it equal to _front


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"orchard_core.testing has no public name {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
