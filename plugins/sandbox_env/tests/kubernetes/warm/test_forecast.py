"""How many pods are kept ready, for which demand."""

from __future__ import annotations

import math
from typing import Any

import pytest
from orchard_env.kubernetes.warm.config import PoolConfig
from orchard_env.kubernetes.warm.forecast import Demand, LeadTime, stock
from orchard_env.kubernetes.warm.pool import Pool
from orchard_env.kubernetes.warm.told import Unobserved

from orchard_core import ConfigError


def test_a_steady_demand_is_known_after_a_few_windows() -> None:
    demand = Demand(window_s=60)
    for number in range(6000):
        demand.note(number / 10, number / 10)
    assert demand.rate(599.9) == pytest.approx(10, rel=0.01)


def test_a_demand_that_ends_is_forgotten_at_the_rate_of_the_window() -> None:
    demand = Demand(window_s=60)
    demand.note(0, 0)
    assert demand.rate(60) == pytest.approx(math.exp(-1) / 60)
    assert demand.rate(120) == pytest.approx(math.exp(-2) / 60)


def test_askings_that_are_learned_late_count_as_if_they_had_been_seen() -> None:
    seen, told = Demand(window_s=60), Demand(window_s=60)
    for at in (1.0, 20.0, 35.0):
        seen.note(at, at)
    for at in (35.0, 1.0, 20.0):
        told.note(at, 50.0)
    assert told.rate(50) == pytest.approx(seen.rate(50))


@pytest.mark.parametrize(
    ("rate", "lead_s", "margin", "wanted"),
    [(0, 5, 2, 0), (1, 4, 0, 4), (1, 4, 2, 8), (5, 20, 2, 120), (5, 20, 3, 130), (0.0001, 5, 2, 0)],
)
def test_the_stock_covers_the_lead_time_and_a_margin(
    rate: float, lead_s: float, margin: float, wanted: int
) -> None:
    assert stock(rate, lead_s, margin) == wanted


def test_the_lead_time_follows_what_is_measured() -> None:
    lead = LeadTime(first_s=5)
    lead.note(8)
    assert lead.seconds == 8
    lead.note(4)
    assert lead.seconds == 7


def _pool(now: list[float] | None = None, **settings: Any) -> Pool:
    clock = now or [0.0]
    config = PoolConfig(name="p", image="i", **settings)
    return Pool(config, "shape", Unobserved(), clock=lambda: clock[0])


def test_a_pool_stays_between_its_bounds() -> None:
    pool = _pool(least=2, most=7)
    assert pool.wanted(0) == 2
    for _ in range(1000):
        pool.asked(0, 0)
    assert pool.wanted(0) == 7
    assert pool.wanted(10_000) == 2


def test_a_target_is_kept_whatever_the_demand() -> None:
    pool = _pool(target=3)
    for _ in range(1000):
        pool.asked(0, 0)
    assert pool.wanted(0) == pool.bearable(3) == 3


def test_a_pod_that_waited_before_it_was_first_seen_tells_nothing_of_the_lead_time() -> None:
    pool = _pool(most=1000)
    pool.asked(0, 0)
    before = pool.wanted(0)
    pool.came_up("found-standing", 5000)
    assert pool.wanted(0) == before
    pool.comes_up("seen")
    pool.came_up("seen", 5000)
    assert pool.wanted(0) > before


def test_failures_are_retried_after_pauses_that_grow_and_one_success_ends_them() -> None:
    now = [0.0]
    pool = _pool(now)
    pauses = []
    for _ in range(9):
        pool.failed("no quota")
        pool.failed("no quota")  # of the same try
        began = now[0]
        while not pool.may_try():
            now[0] += 0.5
        pauses.append(now[0] - began)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert pool.trust() == 1
    pool.comes_up("u")
    pool.came_up("u", 1)
    assert (pool.fault, pool.may_try(), pool.trust() > 1) == ("", True, True)


def test_bounds_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least 5 pods and at most 2"):
        PoolConfig(name="p", image="i", least=5, most=2)
