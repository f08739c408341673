"""What is stored of a group sampler, whatever it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from orchard_core import Done, Drop, FixedSampler, GroupSampler, More, PoolEntry
from orchard_core.rollout.store.run import open_run
from orchard_core.testing import FakeTaskSet

from .starting import Runs, collected


class Once:
    def next(self, pool: Sequence[PoolEntry]) -> More | Done | Drop:
        return Done(group=()) if pool else More(count=1)


@dataclass(frozen=True)
class Balanced(Once):
    low: float = 0.25
    where: Path = Path("here")
    odd: object = field(default_factory=object)


class Spoken(Once):
    def __repr__(self) -> str:
        return "Spoken(until=3)"


@pytest.mark.parametrize(
    ("sampler", "stored"),
    [
        (FixedSampler(size=1), {"name": "FixedSampler", "settings": {"size": 1}}),
        (
            Balanced(),
            {"name": "Balanced", "settings": {"low": 0.25, "where": "here", "odd": "<object object>"}},
        ),
        (Spoken(), {"name": "Spoken", "settings": "Spoken(until=3)"}),
        (Once(), {"name": "Once", "settings": f"<{__name__}.Once object>"}),
    ],
)
async def test_its_settings_are_stored_and_the_same_each_time(
    runs: Runs, tmp_path: Path, sampler: GroupSampler, stored: object
) -> None:
    await collected(runs(FakeTaskSet.of(1), sampler=sampler))
    assert open_run(tmp_path / "run").config.sampler == stored
