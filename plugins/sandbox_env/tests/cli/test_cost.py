"""What sandboxes cost, as the command tells it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from orchard_env.cli.app import app
from orchard_env.costs.prices import PriceTable, Size, read_prices
from orchard_env.costs.scenario import PUBLISHED, Overhead, estimate
from typer.testing import CliRunner

from orchard_core import ConfigError

TABLE = """
default: {vcpu_hour: 0.04, gib_hour: 0.005, gpu_hour: 3, spot_factor: 0.25}
nodes:
  gpu: {cpu: 64, memory_gib: 256, gpus: 4, usd_per_hour: 16, spot_factor: 0.5}
  parts:
    cpu: 10
    memory_gib: 100
    rates: {vcpu_hour: 1, gib_hour: 0.1}
"""


def told(*flags: str) -> dict[str, object]:
    """The command's JSON."""
    done = CliRunner().invoke(app, ["cost", "--json", *flags])
    assert done.exit_code == 0, done.output
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    path = tmp_path / "prices.yaml"
    path.write_text(TABLE)
    return path


def test_the_published_comparison_comes_out_to_the_dollar() -> None:
    found = estimate(PUBLISHED, read_prices(None))
    assert (found.per_node, found.nodes) == (16, 8)
    assert round(found.on_demand_usd) == 3362
    assert round(found.spot_usd) == 673
    assert {name: round(usd) for name, usd in found.services_usd.items()} == {
        "e2b": 7078,
        "daytona": 7078,
        "modal": 10305,
    }


def test_every_price_that_the_published_totals_allow_is_told_with_them() -> None:
    """Totals that were rounded to a dollar say the price of an hour only so exactly."""
    hours = 8 * 240
    node = read_prices(None).node("published-32")
    assert 3361.5 / hours <= node.whole_usd_per_hour < 3362.5 / hours
    assert 672.5 / hours <= node.whole_usd_per_hour * node.spot_factor < 673.5 / hours
    assert "1.7508 to 1.7513" in node.note
    assert "0.3503 to 0.3508" in node.note


def test_the_command_tells_its_sum_and_everything_that_it_takes_for_granted() -> None:
    done = CliRunner().invoke(app, ["cost", "--published"])
    for figure in ("$3,362", "$673", "$7,078", "$10,305", "8 nodes", "1,920 node-hours"):
        assert figure in done.stdout
    for assumption in (
        "kept for the system",
        "spot machines are to be had",
        "control plane",
        "example prices",
    ):
        assert assumption in done.stdout


def test_what_the_system_keeps_for_itself_costs_a_node_more() -> None:
    found = told()
    assert (found["per_node"], found["nodes"], found["bound_by"]) == (15, 9, "cpu")


def test_memory_may_be_what_is_full_and_is_never_promised_twice() -> None:
    found = told("--cpu", "0.1", "--memory-gib", "8", "--overcommit", "8")
    assert (found["per_node"], found["bound_by"]) == (15, "memory")


def test_a_node_takes_no_more_sandboxes_than_its_kubelet_does() -> None:
    found = told("--cpu", "0.01", "--memory-gib", "0.01")
    assert (found["per_node"], found["bound_by"]) == (110, "most")


def test_amounts_that_divide_evenly_fit_though_they_have_no_exact_binary_form() -> None:
    found = told("--cpu", "0.1", "--memory-gib", "1.6", "--overhead-cpu", "0", "--overhead-gib", "0",
                 "--overcommit", "1", "--node", "general-8")  # fmt: skip
    assert found["per_node"] == 20


def test_spot_nodes_that_are_taken_back_cost_their_work_again() -> None:
    sure, shaky = told("--spot-share", "1"), told("--spot-share", "1", "--spot-extra", "0.1")
    assert shaky["usd"] == pytest.approx(sure["usd"] * 1.1)  # type: ignore[operator]
    half = told("--spot-share", "0.5")
    assert half["usd"] == pytest.approx((half["on_demand_usd"] + half["spot_usd"]) / 2)  # type: ignore[operator]


def test_gpus_are_packed_and_priced_by_the_operators_own_table(prices: Path) -> None:
    flags = ("--prices", str(prices), "--node", "gpu", "--gpus", "1", "--sandboxes", "5", "--hours", "10")
    found = told(*flags)
    assert (found["per_node"], found["bound_by"], found["nodes"]) == (4, "gpus", 2)
    assert (found["on_demand_usd"], found["spot_usd"]) == (320.0, 160.0)


def test_a_sandbox_pays_for_its_largest_share_of_a_machine_or_for_its_parts(prices: Path) -> None:
    table = read_prices(prices)
    big = Size(cpu=16.0, memory_gib=128.0)
    assert table.usd_per_hour(big, node="gpu", spot=False) == 8.0
    assert table.usd_per_hour(big, node="gpu", spot=True) == 4.0
    assert table.usd_per_hour(Size(cpu=2.0, memory_gib=10.0), node="parts", spot=False) == 3.0
    assert table.usd_per_hour(Size(cpu=1.0, memory_gib=2.0, gpus=1.0), node=None, spot=False) == 3.05


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--node", "no-such-node"), "no-such-node"),
        (("--cpu", "64"), "does not fit"),
        (("--gpus", "1"), "gpus"),
        (("--prices", "/no/such/file"), "/no/such/file"),
    ],
)
def test_what_cannot_be_reckoned_is_refused_with_the_reason(flags: tuple[str, ...], says: str) -> None:
    done = CliRunner().invoke(app, ["cost", *flags])
    assert isinstance(done.exception, ConfigError)
    assert says in done.exception.message
    assert done.exception.hint


def test_an_amount_that_is_no_number_is_refused() -> None:
    assert CliRunner().invoke(app, ["cost", "--hours", "inf"]).exit_code == 2
    assert CliRunner().invoke(app, ["cost", "--cpu", "nan"]).exit_code == 2


@pytest.mark.parametrize(
    "text", ["default: 3", "{", "default: {vcpu_hour: -1, gib_hour: 0}", "[]", "default: {vcpu_hour: x}"]
)
def test_a_table_that_is_none_is_told_with_the_place_that_is_wrong(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"broken\.yaml"):
        read_prices(path)


def test_a_node_type_without_any_price_is_no_node_type() -> None:
    with pytest.raises(ValueError, match="usd_per_hour or rates"):
        PriceTable.model_validate(
            {"default": {"vcpu_hour": 1, "gib_hour": 1}, "nodes": {"x": {"cpu": 1, "memory_gib": 1}}}
        )


def test_nothing_fits_a_machine_whose_system_takes_it_all() -> None:
    asked = PUBLISHED.model_copy(update={"overhead": Overhead(cpu=32.0, memory_gib=0.0)})
    with pytest.raises(ConfigError, match="does not fit"):
        estimate(asked, read_prices(None))
