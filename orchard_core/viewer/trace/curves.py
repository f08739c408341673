"""Credit as a curve over the turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchard_core.evals.html import words
from orchard_core.types.credit import Credit, ValuePoint
from orchard_core.viewer.trace.parts import Curve

MOST_POINTS = 20_000
"""Turns of a curve that are looked at."""


def credit_curve(name: str, credit: Credit | str, anchors: Sequence[int]) -> Curve:
    """What one directory of credits says of a rollout."""
    if isinstance(credit, str):
        return Curve(name=name, error=credit)
    told = [("estimator", credit.estimator)]
    if credit.resolved:
        told.append(("resolved", "every turn is trained on"))
    if credit.rollouts:
        told.append(("rollouts spent", f"{credit.rollouts:,}"))
    if credit.cost_usd is not None:
        told.append(("cost", words.dollars(credit.cost_usd)))
    told += [
        (key.replace("_", " ")[:40], _plain(value)[:120])
        for key, value in list(credit.settings.items())[:16]
        if value is not None
    ]
    trained = (1,) * len(anchors) if credit.resolved and not credit.mask else credit.mask
    return Curve(
        name=name,
        points=credit.points[:MOST_POINTS],
        segments=credit.segments[:MOST_POINTS],
        trained=trained[:MOST_POINTS],
        anchors=anchors,
        facts=tuple(told),
        error=credit.error,
    )


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{_plain(inner)} {key}" for key, inner in value.items()) or words.NONE
    return str(value)


def row_curve(name: str, values: Sequence[float], trained: Sequence[int]) -> Curve:
    """The curve that a dataset's row carries."""
    points = [ValuePoint(turn=turn, value=value) for turn, value in enumerate(values[:MOST_POINTS])]
    return Curve(
        name=name or "values", points=points, trained=trained[:MOST_POINTS], anchors=range(len(trained))
    )
