"""A real gateway, fake sandboxes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from orchard_core import Rollout
from orchard_core.gateway.retry import RetryPolicy
from orchard_core.gateway.server import Gateway
from orchard_core.rollout.front import run_rollouts
from orchard_core.rollout.parts import RolloutParts
from orchard_core.rollout.settings import PhaseLimits, RolloutSettings
from orchard_core.testing import FakeHarness, FakeModel, FakeProvider, FakeReply, FakeTaskSet

from .attempts import QUICK
from .harnesses import Acting, solve
from .starting import RETRY, Runs


@pytest.fixture
async def gateway() -> AsyncIterator[Gateway]:
    async with Gateway(retry=RetryPolicy(attempts=1)) as running:
        yield running


@pytest.fixture
async def provider() -> AsyncIterator[FakeProvider]:
    made = FakeProvider()
    yield made
    await made.close()


@pytest.fixture
def parts(gateway: Gateway, provider: FakeProvider) -> RolloutParts:
    """A task set of one task, solved by the first thing the model says."""
    solving = FakeReply.call("bash", command="printf 0 > answer.txt")
    return RolloutParts(
        taskset=FakeTaskSet.of(1),
        harness=FakeHarness(),
        model=FakeModel([solving]),
        provider=provider,
        gateway=gateway,
        settings=QUICK,
    )


@pytest.fixture
def runs(gateway: Gateway, provider: FakeProvider, tmp_path: Path) -> Runs:
    """run_rollouts with fakes, into one directory."""

    def start(taskset: FakeTaskSet | None = None, **options: Any) -> AsyncGenerator[Rollout, None]:
        defaults: dict[str, Any] = {
            "harness": Acting(solve),
            "model": FakeModel(),
            "sandbox": provider,
            "gateway": gateway,
            "out": tmp_path / "run",
            "retry": RETRY,
            "settings": RolloutSettings(phases=PhaseLimits(cancel_s=0.5, close_s=2)),
        }
        return run_rollouts(taskset or FakeTaskSet.of(3), **(defaults | options))

    return start
