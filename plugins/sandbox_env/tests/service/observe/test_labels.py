"""However clients call themselves: few series, and lines that stay lines."""

from __future__ import annotations

from orchard_env.service.observe.labels import BoundedLabel, Remembered, harmless
from orchard_env.service.observe.metrics import phases
from orchard_env.service.observe.observing import observing
from orchard_env.service.observe.settings import ObserveSettings
from orchard_env.service.seams import Making

from orchard_core import CreationStep, OrchardError, SandboxSpec

from .samples import Samples

HOSTILE = ('a"} 1\nforged_metric 7', "\ud800", "x" * 5000, "\u202eevil", "\x1b[31m", "", "back\\slash")


def making(tenant: str, fault: OrchardError | None = None, **steps: float) -> Making:
    """A creation that took a second."""
    return Making(
        sandbox_id=f"of-{tenant[:20]!r}",
        tenant=tenant,
        spec=SandboxSpec(),
        queued_s=0.5,
        seconds=1.0,
        steps={CreationStep(name): at for name, at in steps.items()},
        fault=fault,
    )


def test_hostile_names_forge_no_lines_and_break_no_scrape() -> None:
    metrics = observing(ObserveSettings()).metrics
    for name in HOSTILE:
        metrics.created(making(name))
        metrics.executed(name, "succeeded", 0.1, run=name)
        metrics.arrived()
        metrics.answered(name, 200, 0.1)
    found = Samples(metrics.exposition().decode("utf-8"))
    assert "forged_metric" not in found.names
    assert found("creates_total") == len(HOSTILE)
    assert all(len(value) <= 64 and value.isprintable() for _, own in found.values for _, value in own)


def test_tenants_beyond_the_bound_share_a_label_and_lose_nothing() -> None:
    metrics = observing(ObserveSettings(tenants=3)).metrics
    for number in range(50):
        metrics.created(making(f"tenant-{number}"))
        metrics.answered(f"/{number}", 200 + number, 0.1)
    found = Samples(metrics.exposition().decode())
    assert found("creates_total") == 50
    assert found("creates_total", tenant="other") == 47


def test_a_bound_holds_for_labels_that_are_endless_themselves() -> None:
    label = BoundedLabel(1000)
    assert {label("x" * 300 + str(number)) for number in range(5000)} == {"other"}
    assert label("short") == "short"


def test_a_label_is_never_empty_and_keeps_what_people_write() -> None:
    assert harmless("") == "none"
    assert harmless("équipe-7 日本") == "équipe-7 日本"


def test_names_are_remembered_within_bounds() -> None:
    seen = Remembered(10)
    assert [seen.is_new("a"), seen.is_new("a")] == [True, False]
    for number in range(1000):
        seen.is_new(str(number))
    assert not seen.is_new("999")
    assert seen.is_new("a")


def test_phases_are_what_lies_between_steps_and_what_a_pool_says_is_none() -> None:
    told = making("t", placed=0.1, scheduled=0.4, answered=0.9, furnished=1.0, pool_miss=0.01)
    found = phases(told)
    assert [*found] == ["queued", "placed", "scheduled", "answered", "furnished"]
    assert [round(seconds, 3) for seconds in found.values()] == [0.5, 0.1, 0.3, 0.5, 0.1]


def test_claims_of_a_warm_pool_are_counted_as_hits_and_misses() -> None:
    metrics = observing(ObserveSettings()).metrics
    metrics.created(making("t", pool_hit=0.01, answered=0.02))
    metrics.created(making("t", pool_miss=0.01, answered=0.9))
    metrics.created(making("t", answered=0.9))
    found = Samples(metrics.exposition().decode())
    assert (found("pool_claims_total", result="hit"), found("pool_claims_total", result="miss")) == (1, 1)
