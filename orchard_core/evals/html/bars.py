"""The chart of how rollouts ended, as a Vega-Lite specification."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from orchard_core.evals.clean import clean_line
from orchard_core.evals.html.chart import NARROW, Json, base, layer, named
from orchard_core.evals.html.verdict import Verdict
from orchard_core.evals.html.view import CellView

_BESIDE = {True: 60, False: 300}
"""Pixels left for the names, by whether the screen is narrow."""


def endings(cells: Sequence[CellView], *, width: int) -> Json | None:
    """One bar a cell, its parts by whose doing; None without rollouts."""
    narrow = width == NARROW
    parts: list[JsonValue] = [part for view in cells for part in _parts(view, narrow=narrow)]
    if not parts:
        return None
    # Names may come out wider than they were measured: the reader's font is not known.
    padding: Json = {"left": 4 if narrow else 56, "right": 12, "top": 4, "bottom": 4}
    return {
        **base(),
        "width": width - _BESIDE[narrow],
        "height": {"step": 30},
        "padding": padding,
        "data": {"values": parts},
        "layer": _layers(),
    }


def _parts(view: CellView, *, narrow: bool) -> Iterator[Json]:
    begin, everything = 0.0, len(view.rollouts)
    name = str(view.number) if narrow else clean_line(f"{view.number}  {view.name}", 40)
    for verdict in Verdict:
        count = view.verdicts.get(verdict, 0)
        if count:
            share = count / everything
            text = f"{verdict.letter} {count}" if share > (0.16 if narrow else 0.07) else ""
            yield {
                "cell": name,
                "verdict": verdict.value,
                "from": begin,
                "to": begin + share,
                "middle": begin + share / 2,
                "text": text,
            }
            begin += share


def _layers() -> list[JsonValue]:
    verdicts = [verdict.value for verdict in Verdict]
    cell: Json = {"field": "cell", "type": "nominal", "sort": None, "title": None}
    cell["axis"] = {"ticks": False, "domain": False, "labelLimit": 260, "labelPadding": 8}
    share: Json = {"field": "from", "type": "quantitative", "title": None, "scale": {"domain": [0, 1]}}
    share["axis"] = {"format": ".0%", "tickCount": 4, "grid": False}
    colour: Json = {"field": "verdict", "type": "nominal", "legend": None}
    colour["scale"] = named([*verdicts], [f"var(--{name})" for name in verdicts])
    bar: Json = {"type": "bar", "height": 20, "stroke": "var(--paper)", "strokeWidth": 1}
    text: Json = {"type": "text", "color": "var(--on)", "fontSize": 11, "fontWeight": 600}
    return [
        layer(bar, {"x": share, "x2": {"field": "to"}, "y": cell, "color": colour}),
        layer(text, {"x": {**share, "field": "middle"}, "y": cell, "text": {"field": "text"}}),
    ]
