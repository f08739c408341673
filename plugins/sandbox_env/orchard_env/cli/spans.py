"""Spans of time as people write them."""

from __future__ import annotations

import re

import typer

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)([smhd])")


def seconds(text: str) -> float:
    """`90d`, `12h`, `30m` or `10s` in seconds. Raises BadParameter."""
    found = _SPAN.fullmatch(text)
    if found is None:
        raise typer.BadParameter(f"{text!r} is no span of time: write 90d, 12h, 30m or 10s")
    return float(found[1]) * _UNITS[found[2]]
