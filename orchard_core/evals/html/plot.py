"""The chart of cost and accuracy, as a Vega-Lite specification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log10

from pydantic import JsonValue

from orchard_core.evals.html.chart import NARROW, Json, base, layer, named
from orchard_core.evals.html.view import CellView
from orchard_core.evals.statistics import Estimate

COLOURS = 8
"""Harnesses told apart by colour; style.css names them --c0 to --c7."""
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
"""Models told apart by shape."""
_SPREAD = 30.0
"""Largest price over the smallest from which the axis is logarithmic."""
_EDGE = 0.75
"""Share of the width from which a label has no room at its right."""
_NEAR = (28, 16)
"""Pixels across and up within which points share one label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One cell."""

    label: str
    """Its number."""
    price: float
    """Of a finished rollout, in dollars or tokens."""
    rate: Estimate
    """pass@1 over everything planned."""
    colour: int
    """By harness."""
    shape: int
    """By model."""

    def as_json(self, label: str = "") -> Json:
        """As a row of the chart's data."""
        rate = self.rate
        return {
            "label": label or self.label,
            "price": self.price,
            "rate": rate.value,
            "low": rate.value if rate.low is None else rate.low,
            "high": rate.value if rate.high is None else rate.high,
            "colour": self.colour,
            "shape": self.shape,
        }


def costs_known(cells: Sequence[CellView]) -> bool:
    """Some cell has a cost above zero, so that there is something to plot."""
    return any(view.cost_each for view in cells)


def cost_accuracy(cells: Sequence[CellView], *, width: int) -> Json | None:
    """pass@1 by the price of a rollout: dollars, or tokens where no cost is known; None with less
    than two points, which say no more than the table."""
    in_dollars = costs_known(cells)
    points = _points(cells, in_dollars=in_dollars)
    if len(points) < 2:
        return None
    prices = [point.price for point in points]
    log = min(prices) > 0 and max(prices) / min(prices) > _SPREAD
    height = 280 if width == NARROW else 340
    labels = _labels(points, log=log, width=width, height=height)
    rows: list[JsonValue] = [point.as_json() for point in points]
    return {
        **base(),
        "width": width,
        "height": height,
        "autosize": {"type": "fit", "contains": "padding"},
        "data": {"values": rows},
        "layer": _layers(_price_axis(in_dollars=in_dollars, log=log, width=width), labels),
    }


def _points(cells: Sequence[CellView], *, in_dollars: bool) -> list[Point]:
    harnesses = list(dict.fromkeys(view.cell.key.harness for view in cells))
    models = list(dict.fromkeys(view.cell.key.model for view in cells))
    points: list[Point] = []
    for view in cells:
        rate = view.cell.report.total.pass_at_1.planned
        price = view.cost_each if in_dollars else view.tokens_each
        if rate is not None and price is not None:
            colour = harnesses.index(view.cell.key.harness) % COLOURS
            shape = models.index(view.cell.key.model) % len(SHAPES)
            points.append(Point(label=str(view.number), price=price, rate=rate, colour=colour, shape=shape))
    return points


def _price_axis(*, in_dollars: bool, log: bool, width: int) -> Json:
    axis: Json = {"format": "$,~f" if in_dollars else "~s", "grid": False, "labelOverlap": "greedy"}
    axis["labelSeparation"] = 12
    if not in_dollars:  # one prefix is chosen for all ticks, so that nought would be 0k
        axis["labelExpr"] = "datum.value === 0 ? '0' : datum.label"
    axis["tickCount"] = 4 if width == NARROW else 8
    unit = "US dollars" if in_dollars else "Tokens"
    return {
        "field": "price",
        "type": "quantitative",
        "title": f"{unit} a rollout" + (" (log scale)" if log else ""),
        "scale": {"type": "log" if log else "linear", "nice": True, "zero": not log},
        "axis": axis,
    }


def _layers(price: Json, labels: Mapping[str, list[JsonValue]]) -> list[JsonValue]:
    rate: Json = {"field": "rate", "type": "quantitative", "title": "pass@1, planned"}
    rate |= {"scale": {"domain": [0, 1]}, "axis": {"format": ".0%", "tickCount": 5}}
    colour: Json = {"field": "colour", "type": "nominal", "legend": None}
    colour["scale"] = named([*range(COLOURS)], [f"var(--c{number})" for number in range(COLOURS)])
    shape: Json = {"field": "shape", "type": "nominal", "legend": None}
    shape["scale"] = named([*range(len(SHAPES))], [*SHAPES])
    interval: Json = {"x": price, "y": {**rate, "field": "low"}, "y2": {"field": "high"}, "color": colour}
    text: Json = {"type": "text", "dy": -9, "fontSize": 13, "fontWeight": 600, "color": "var(--ink)"}
    label: Json = {"x": price, "y": rate, "text": {"field": "label"}}
    return [
        layer({"type": "rule", "strokeWidth": 1.5, "opacity": 0.45}, interval),
        layer(
            {"type": "point", "filled": True, "size": 110, "opacity": 1},
            {"x": price, "y": rate, "color": colour, "shape": shape},
        ),
        *(
            layer({**text, "align": align, "dx": dx}, label, labels[align])
            for align, dx in (("left", 9), ("right", -9))
        ),
    ]


def _labels(points: Sequence[Point], *, log: bool, width: int, height: int) -> Mapping[str, list[JsonValue]]:
    """One label for points that lie on each other, with all their numbers, by alignment: at the right of the
    rightmost, but near the right edge at the left of the leftmost, where there is room."""
    across = [log10(point.price) if log else point.price for point in points]
    span = (max(across) - (min(across) if log else 0.0)) or 1.0
    groups: list[list[int]] = []
    for place in sorted(range(len(points)), key=across.__getitem__):
        near = (group for group in groups if _near(points, across, span, (group[-1], place), width, height))
        joined = next(near, None)
        if joined is None:
            groups.append([place])
        else:
            joined.append(place)
    found: dict[str, list[JsonValue]] = {"left": [], "right": []}
    for group in groups:
        share = (across[group[-1]] - (min(across) if log else 0.0)) / span
        text = ", ".join(points[number].label for number in sorted(group))
        side, anchor = ("right", group[0]) if share > _EDGE else ("left", group[-1])
        found[side].append(points[anchor].as_json(text))
    return found


def _near(
    points: Sequence[Point],
    across: Sequence[float],
    span: float,
    pair: tuple[int, int],
    width: int,
    height: int,
) -> bool:
    left, right = pair
    sideways = abs(across[left] - across[right]) / span * (width - 60)
    up = abs(points[left].rate.value - points[right].rate.value) * (height - 50)
    return sideways < _NEAR[0] and up < _NEAR[1]
