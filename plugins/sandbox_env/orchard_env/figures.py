"""Figures as people read them, on a terminal and on a page."""

from __future__ import annotations

_SHORT = ("s", "m", "h", "d")


def span(seconds: float, units: tuple[str, str, str, str] = _SHORT) -> str:
    """`42s`, `5m`, `3.5h`, `12d`, with these units."""
    second, minute, hour, day = units
    if seconds < 120:
        return f"{seconds:.0f}{second}"
    if seconds < 7200:
        return f"{seconds / 60:.0f}{minute}"
    return f"{seconds / 3600:.1f}{hour}" if seconds < 172800 else f"{seconds / 86400:.0f}{day}"


def dollars(amount: float) -> str:
    """`$0.0123`, `$1,234.50`."""
    return f"${amount:,.2f}" if amount >= 1 or not amount else f"${amount:.4f}"
