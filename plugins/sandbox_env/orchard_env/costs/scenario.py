"""So many sandboxes for so long on machines of one kind: how many machines, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from pydantic import Field

from orchard_core import ConfigError, Record
from orchard_env.costs.prices import NodeType, PriceTable, Size

_EXACT = 1e-9


class Overhead(Record):
    """What of a machine no sandbox gets: the system, the kubelet, agents of the cloud."""

    cpu: float = Field(default=0.5, ge=0)
    """vCPUs of each machine."""
    memory_gib: float = Field(default=2.0, ge=0)
    """GiB of each machine."""


class Scenario(Record):
    """What is to be run."""

    sandboxes: int = Field(ge=1)
    """Sandboxes at once, all the time."""
    hours: float = Field(gt=0)
    """For so long."""
    size: Size
    """Of each."""
    node: str
    """A node type of the price table."""
    overhead: Overhead = Overhead()
    """Of each machine."""
    overcommit: float = Field(default=1.0, ge=1)
    """vCPUs promised for each that there is. Memory is never promised twice."""
    spot_share: float = Field(default=0.0, ge=0, le=1)
    """Part of the machines that are spot ones."""
    spot_extra: float = Field(default=0.0, ge=0)
    """Work done again because spot machines were taken back, as a part of their time."""


PUBLISHED = Scenario(
    sandboxes=128,
    hours=240.0,
    size=Size(cpu=2.0, memory_gib=8.0),
    node="published-32",
    overhead=Overhead(cpu=0.0, memory_gib=0.0),
)
"""The comparison that the published Orchard Env makes."""


class Estimate(Record):
    """What it comes to."""

    scenario: Scenario
    """What was asked."""
    per_node: int
    """Sandboxes that fit a machine."""
    nodes: int
    """Machines."""
    bound_by: str
    """What keeps more from fitting: `cpu`, `memory`, `gpus` or `most`."""
    node_hours: float
    """Hours of a machine, of all together."""
    sandbox_hours: float
    """Hours of a sandbox, of all together."""
    on_demand_usd: float
    """With no spot machine."""
    spot_usd: float
    """With nothing but spot machines."""
    usd: float
    """With the share of spot machines that was asked for."""
    usd_per_sandbox_hour: float
    """Of that."""
    services_usd: Mapping[str, float]
    """The same sandboxes and hours at services that charge by the sandbox."""
    assumptions: tuple[str, ...]
    """What the sum rests on, in words."""


def estimate(scenario: Scenario, prices: PriceTable) -> Estimate:
    """Raises ConfigError for a sandbox that fits no machine of the kind, or for one unknown."""
    node = prices.node(scenario.node)
    per_node, bound_by = fitting(scenario, node)
    nodes = math.ceil(scenario.sandboxes / per_node)
    hours = nodes * scenario.hours
    full = hours * node.whole_usd_per_hour
    spot = full * node.spot_factor * (1 + scenario.spot_extra)
    usd = full * (1 - scenario.spot_share) + spot * scenario.spot_share
    sandbox_hours = scenario.sandboxes * scenario.hours
    return Estimate(
        scenario=scenario,
        per_node=per_node,
        nodes=nodes,
        bound_by=bound_by,
        node_hours=hours,
        sandbox_hours=sandbox_hours,
        on_demand_usd=full,
        spot_usd=spot,
        usd=usd,
        usd_per_sandbox_hour=usd / sandbox_hours,
        services_usd={
            name: rates.usd_per_hour(scenario.size) * sandbox_hours for name, rates in prices.services.items()
        },
        assumptions=tuple(_assumptions(scenario, node, prices)),
    )


def fitting(scenario: Scenario, node: NodeType) -> tuple[int, str]:
    """Sandboxes that fit one machine, and what keeps more from fitting. Raises ConfigError for none."""
    size, overhead = scenario.size, scenario.overhead
    room = {
        "cpu": _times((node.cpu - overhead.cpu) * scenario.overcommit, size.cpu),
        "memory": _times(node.memory_gib - overhead.memory_gib, size.memory_gib),
        "gpus": _times(node.gpus, size.gpus),
        "most": node.most,
    }
    bound_by = min(room, key=room.__getitem__)
    if room[bound_by] < 1:
        raise ConfigError(
            f"a sandbox of {size.cpu:g} vCPU, {size.memory_gib:g} GiB and {size.gpus:g} GPUs does not fit "
            f"{scenario.node}: its {bound_by} does not suffice",
            hint="choose a larger --node, or a smaller sandbox",
        )
    return int(room[bound_by]), bound_by


def _times(there: float, each: float) -> float:
    return math.floor(there / each + _EXACT) if each else math.inf


def _assumptions(scenario: Scenario, node: NodeType, prices: PriceTable) -> Iterator[str]:
    yield f"every machine runs, and is paid, for all {scenario.hours:g} h, however busy its sandboxes are"
    full, spot = node.whole_usd_per_hour, node.whole_usd_per_hour * node.spot_factor
    yield (
        f"a {scenario.node} has {node.cpu:g} vCPU and {node.memory_gib:g} GiB for ${full:.4f} an hour, "
        f"as a spot machine for ${spot:.4f}"
    )
    kept = scenario.overhead
    yield f"{kept.cpu:g} vCPU and {kept.memory_gib:g} GiB of each machine are kept for the system"
    if scenario.overcommit > 1:
        yield f"{scenario.overcommit:g} vCPUs are promised for each that there is"
    if not scenario.spot_extra:
        yield "spot machines are to be had all the time, and nothing is done again when one is taken back"
    else:
        yield f"{scenario.spot_extra:.0%} of the time of spot machines is work done again"
    yield "the control plane, the service's own machines, disks, images and network traffic are not in it"
    yield "services charge for what a sandbox asks for while it stands; plans and free hours are left out"
    for text in (node.note, prices.note):
        if text:
            yield text
