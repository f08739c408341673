"""How figures are written, whatever they are written into."""

from __future__ import annotations


def count(number: float) -> str:
    """`950`, `12.3k`, `4.56M`."""
    for size, suffix in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.3g}{suffix}"
    return f"{number:.0f}"


def p_value(value: float) -> str:
    """`0.042`, `<0.001`."""
    return "<0.001" if value < 0.001 else f"{value:.3f}"
