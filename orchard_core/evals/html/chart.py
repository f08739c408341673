"""What both charts share. Colours are the page's own CSS variables, so that they follow light and dark."""

from __future__ import annotations

from typing import TypeAlias

from pydantic import JsonValue

Json: TypeAlias = dict[str, JsonValue]

WIDE, MIDDLE, NARROW = 900, 640, 326
"""Pixels: of a desktop's column, of a tablet's, and of a telephone's."""
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
"""Names the language; nothing is fetched."""


def base(*, background: str = "transparent") -> Json:
    """The part of a specification that no data decides."""
    axis: Json = {
        "labelColor": "var(--soft)",
        "titleColor": "var(--ink)",
        "domainColor": "var(--edge)",
        "tickColor": "var(--edge)",
        "gridColor": "var(--rule)",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": 500,
        "titlePadding": 10,
    }
    config: Json = {"view": {"stroke": None}, "axis": axis}
    return {"$schema": SCHEMA, "background": background, "config": config}


def layer(mark: Json, encoding: Json, values: list[JsonValue] | None = None) -> Json:
    """One layer, over data of its own when it has any."""
    made: Json = {"mark": mark, "encoding": encoding}
    return made if values is None else {**made, "data": {"values": values}}


def named(domain: list[JsonValue], shown: list[JsonValue]) -> Json:
    """A scale that gives each value its colour or shape."""
    return {"domain": domain, "range": shown}
