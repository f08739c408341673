"""The dashboard asks for nothing that is not there, and the reference tells of all that is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from orchard_env.service.admission.fair import AdmissionLimits
from orchard_env.service.admission.gate import Gate
from orchard_env.service.observe.observing import observing
from orchard_env.service.observe.settings import ObserveSettings
from orchard_env.service.seams import Making, Work
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from orchard_core import CreationStep, SandboxSpec, Unschedulable

from .conftest import parts

ROOT = Path(__file__).parents[5]
DASHBOARD = ROOT / "deploy" / "grafana" / "orchard-env.json"
REFERENCE = ROOT / "docs" / "reference" / "orchard-env-metrics.md"
_NAME = re.compile(r"orchard_env_[a-z_]+")
_LABELS = re.compile(r"by \(([^)]*)\)")
_OF_PROMETHEUS = {"instance", "le"}


@pytest.fixture(scope="module")
def families() -> list[Metric]:
    """What a service tells once everything has happened."""
    gate = Gate("making sandboxes", AdmissionLimits().create)
    watch = observing(ObserveSettings(), loads=lambda: {Work.CREATE: gate.load})
    parts(watch)
    metrics = watch.metrics
    steps = dict.fromkeys(CreationStep, 0.1)
    made = Making(
        sandbox_id="a", tenant="t", spec=SandboxSpec(), queued_s=0, seconds=1, steps=steps, fault=None
    )
    metrics.created(made)
    metrics.ended("a", Unschedulable("x"))
    metrics.executed("t", "succeeded", 0.1, 0.1, run="r")
    metrics.arrived()
    metrics.answered("/", 200, 0.1)
    return [*text_string_to_metric_families(metrics.exposition().decode())]


@pytest.fixture(scope="module")
def series(families: list[Metric]) -> dict[str, set[str]]:
    """Every series of it, with its labels."""
    found: dict[str, set[str]] = {}
    for family in families:
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def queries() -> list[str]:
    """Every query of the dashboard."""
    board: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return [target["expr"] for panel in board["panels"] for target in panel["targets"]]


def test_every_query_names_series_that_exist(series: dict[str, set[str]]) -> None:
    assert len(queries()) > 20
    for query in queries():
        names = _NAME.findall(query)
        assert names, query
        assert set(names) <= set(series), query


def test_every_query_groups_by_labels_that_its_series_have(series: dict[str, set[str]]) -> None:
    for query in queries():
        (name, *_) = _NAME.findall(query)
        for labels in _LABELS.findall(query):
            wanted = {label.strip() for label in labels.split(",")} - _OF_PROMETHEUS
            assert wanted <= series[name], query


def test_panels_do_not_lie_on_each_other() -> None:
    board = json.loads(DASHBOARD.read_text())
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


def test_the_reference_tells_of_every_metric_and_of_no_other(series: dict[str, set[str]]) -> None:
    ours = {re.sub("_(bucket|sum|count)$", "", name) for name in series if "_process_" not in name}
    told = set(re.findall(r"^\| `(orchard_env_[a-z_]+)`", REFERENCE.read_text(), re.MULTILINE))
    assert told == ours


def test_the_reference_tells_each_metrics_kind_and_labels(families: list[Metric]) -> None:
    told = {
        name: (kind, set(re.findall("`([a-z]+)`", labels)))
        for name, kind, labels in re.findall(
            r"^\| `(orchard_env_[a-z_]+)` \| (\w+) \|([^|]*)\|", REFERENCE.read_text(), re.MULTILINE
        )
    }
    for family in families:
        if "_process_" not in family.name:
            name = family.name + ("_total" if family.type == "counter" else "")
            labels = {label for sample in family.samples for label in sample.labels} - {"le"}
            assert told[name] == (family.type, labels), name


def test_every_panel_has_a_title_and_a_unit_that_fits_its_query() -> None:
    board = json.loads(DASHBOARD.read_text())
    for panel in board["panels"]:
        assert panel["title"]
        unit = panel["fieldConfig"]["defaults"]["unit"]
        for target in panel["targets"]:
            assert ("_seconds_bucket" in target["expr"]) == (unit == "s"), panel["title"]
            assert ("cost_usd" in target["expr"]) == (unit == "currencyUSD"), panel["title"]
            assert ("gib" in target["expr"]) == (unit == "gbytes"), panel["title"]


def test_the_reference_tells_of_every_setting() -> None:
    told = set(re.findall(r"^\| `([a-z_]+)` \|", REFERENCE.read_text(), re.MULTILINE))
    assert set(ObserveSettings.model_fields) <= told
