"""`orchard env cost`: what so many sandboxes for so long cost."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchard_env.cli.place import JsonFlag

if TYPE_CHECKING:
    from orchard_env.costs.scenario import Estimate, Scenario

_SIZE, _MACHINES = "Sandboxes", "Machines"


def cost(  # noqa: PLR0913, PLR0917 - Typer makes one option of each parameter
    sandboxes: Annotated[
        int, typer.Option("--sandboxes", min=1, help="At once, all the time.", rich_help_panel=_SIZE)
    ] = 128,
    hours: Annotated[
        float, typer.Option("--hours", min=0.01, help="For so long.", rich_help_panel=_SIZE)
    ] = 240.0,
    cpu: Annotated[
        float, typer.Option("--cpu", min=0.01, help="vCPUs of each.", rich_help_panel=_SIZE)
    ] = 2.0,
    memory_gib: Annotated[
        float, typer.Option("--memory-gib", min=0.01, help="GiB of each.", rich_help_panel=_SIZE)
    ] = 8.0,
    gpus: Annotated[float, typer.Option("--gpus", min=0, help="GPUs of each.", rich_help_panel=_SIZE)] = 0.0,
    node: Annotated[
        str,
        typer.Option(
            "--node", metavar="NAME", help="Node type of the price table.", rich_help_panel=_MACHINES
        ),
    ] = "published-32",
    overhead_cpu: Annotated[
        float,
        typer.Option(
            "--overhead-cpu",
            min=0,
            help="vCPUs of each node that no sandbox gets.",
            rich_help_panel=_MACHINES,
        ),
    ] = 0.5,
    overhead_gib: Annotated[
        float,
        typer.Option(
            "--overhead-gib", min=0, help="GiB of each node that no sandbox gets.", rich_help_panel=_MACHINES
        ),
    ] = 2.0,
    overcommit: Annotated[
        float,
        typer.Option(
            "--overcommit",
            min=1,
            help="vCPUs promised for each that there is.",
            rich_help_panel=_MACHINES,
        ),
    ] = 1.0,
    spot_share: Annotated[
        float,
        typer.Option(
            "--spot-share", min=0, max=1, help="Part of the nodes that are spot.", rich_help_panel=_MACHINES
        ),
    ] = 0.0,
    spot_extra: Annotated[
        float,
        typer.Option(
            "--spot-extra",
            min=0,
            help="Work done again because spot nodes were taken back, such as 0.05.",
            rich_help_panel=_MACHINES,
        ),
    ] = 0.0,
    prices: Annotated[
        Path | None, typer.Option("--prices", metavar="FILE", help="YAML price table instead of the example.")
    ] = None,
    published: Annotated[
        bool, typer.Option("--published", help="The published comparison; the other flags are left out.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """What sandboxes cost on nodes of your own, and at services that charge by the sandbox.

    Prices are an example until --prices gives yours.
    """
    from orchard_env.costs.prices import Size, read_prices
    from orchard_env.costs.scenario import PUBLISHED, Overhead, Scenario, estimate

    asked = Scenario(
        sandboxes=sandboxes,
        hours=_finite(hours),
        size=Size(cpu=_finite(cpu), memory_gib=_finite(memory_gib), gpus=_finite(gpus)),
        node=node,
        overhead=Overhead(cpu=_finite(overhead_cpu), memory_gib=_finite(overhead_gib)),
        overcommit=_finite(overcommit),
        spot_share=_finite(spot_share),
        spot_extra=_finite(spot_extra),
    )
    found = estimate(PUBLISHED if published else asked, read_prices(prices))
    typer.echo(found.model_dump_json(indent=2) if as_json else "\n".join(_lines(found)))


def _finite(number: float) -> float:
    """`nan` and `inf` are numbers to the command line, and lie in every range. Raises BadParameter."""
    if not math.isfinite(number):
        raise typer.BadParameter(f"{number} is no amount")
    return number


def _lines(found: Estimate) -> list[str]:
    return [_asked(found.scenario), _machines(found), "", *_bill(found), "", *_assumed(found)]


def _asked(asked: Scenario) -> str:
    size = asked.size
    each = f"{size.cpu:g} vCPU, {size.memory_gib:g} GiB" + (f", {size.gpus:g} GPU" if size.gpus else "")
    return f"{asked.sandboxes:,} sandboxes x {asked.hours:g} h of {each}"


def _machines(found: Estimate) -> str:
    return (
        f"{found.per_node} fit a {found.scenario.node} (its {found.bound_by} is full): "
        f"{found.nodes:,} nodes, {found.node_hours:,.0f} node-hours, {found.sandbox_hours:,.0f} sandbox-hours"
    )


def _bill(found: Estimate) -> list[str]:
    rows = [("on demand", found.on_demand_usd), ("spot", found.spot_usd)]
    if 0 < found.scenario.spot_share < 1:
        rows.append((f"{found.scenario.spot_share:.0%} spot", found.usd))
    rows += found.services_usd.items()
    width = max(len(name) for name, _ in rows)
    return [
        f"{name:<{width}}  {f'${usd:,.0f}':>12}  ${usd / found.sandbox_hours:.4f} a sandbox-hour"
        for name, usd in rows
    ]


def _assumed(found: Estimate) -> list[str]:
    return ["It is taken that", *(f"- {text}" for text in found.assumptions)]
