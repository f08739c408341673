"""How figures are written in the page."""

from __future__ import annotations

from markupsafe import Markup, escape

from orchard_core.evals.figures import count as count
from orchard_core.evals.figures import p_value
from orchard_core.evals.paired import MeanDifference
from orchard_core.evals.statistics import Estimate

NONE = "\N{EN DASH}"
"""Not defined, or not known by anyone."""


def percent(value: float) -> str:
    """`66.7%`; `100%` and `0%` only when it is exactly that."""
    if value in {0.0, 1.0}:
        return f"{value * 100:.0f}%"
    return f"{min(max(value * 100, 0.1), 99.9):.1f}%"


def rate(estimate: Estimate | None) -> str:
    """The value alone."""
    return NONE if estimate is None else percent(estimate.value)


def interval(estimate: Estimate | None) -> str:
    """`61.2 to 85.0%`; empty when there is none."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return ""
    return f"{percent(estimate.low).removesuffix('%')} to {percent(estimate.high)}"


def points(value: float) -> str:
    """A difference in percentage points, with its sign: `+12.5`, `0`."""
    text = f"{abs(value) * 100:.1f}"
    sign = "+" if value > 0 else "\N{MINUS SIGN}"
    return sign + text if text != "0.0" else "0"


def points_interval(difference: MeanDifference) -> str:
    """Its interval; empty when there is none."""
    if difference.low is None or difference.high is None:
        return ""
    return f"{points(difference.low)} to {points(difference.high)}"


def probability(value: float | None) -> str:
    """A p-value."""
    return NONE if value is None else p_value(value)


def dollars(usd: float | None) -> str:
    """`$1.50`, `$0.0123`; what is not known is never $0."""
    if usd is None:
        return "unknown"
    return f"${usd:,.2f}" if usd >= 1 or usd == 0 else f"${usd:.4f}"


def seconds(value: float | None) -> str:
    """`0.4 s`, `35 s`, `12 min`, `3.4 h`."""
    if value is None:
        return NONE
    if value < 10:
        return f"{value:.1f} s"
    if value < 120:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"


def decimal(value: float | None, form: str = ".1f") -> str:
    """A plain number."""
    return NONE if value is None else format(value, form)


def plural(number: int, one: str, many: str = "") -> str:
    """`1 task`, `20 tasks`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def whole(text: str) -> Markup:
    """A text of ours that is not to be cut."""
    return escape(text)
