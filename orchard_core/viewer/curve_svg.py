"""The value curve as a drawing of our own: no text in it, so that it stretches to any width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from markupsafe import Markup

from orchard_core.types.credit import ValuePoint
from orchard_core.viewer.trace.parts import Curve

WIDTH, HEIGHT = 1000, 120
MOST = 400
"""Points that are drawn; more would not be seen."""
_MARGIN = 6


def draw(curve: Curve, address: str = "") -> Markup:
    """The curve; each turn leads to `ADDRESS#turn-N`. Empty when there is nothing to draw."""
    points = _thinned(curve.points)
    if len(points) < 2:
        return Markup()
    last = max(point.turn for point in points)
    scale = _Scale(last)
    parts = [
        *_grid(),
        *_rises(curve, scale),
        *_band(points, scale),
        *_line(points, scale),
        *_dots(points, scale),
    ]
    parts += _ticks(curve, scale)
    parts += _places(curve, points, scale, address)
    label = (
        f"Value before each turn, {points[0].value:.2f} at the start and {points[-1].value:.2f} at the end"
    )
    return Markup(
        '<svg class="curve" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" '
        'aria-label="{}">{}</svg>'
    ).format(WIDTH, HEIGHT + 14, label, Markup("").join(parts))


class _Scale:
    """From turns and values to the drawing."""

    def __init__(self, last: int) -> None:
        self._last = max(last, 1)

    def x(self, turn: float) -> float:
        return round(_MARGIN + turn / self._last * (WIDTH - 2 * _MARGIN), 1)

    def y(self, value: float) -> float:
        return round(_MARGIN + (1 - min(max(value, 0.0), 1.0)) * (HEIGHT - 2 * _MARGIN), 1)


def _thinned(points: Sequence[ValuePoint]) -> Sequence[ValuePoint]:
    known = [point for point in points if point.turn >= 0]
    step = -(-len(known) // MOST) if known else 1
    return known if step == 1 else [*known[::step], known[-1]]


def _path(kind: str, shape: str) -> Markup:
    return Markup('<path class="{}" d="{}"/>').format(kind, shape)


def _grid() -> Iterator[Markup]:
    for value in (0.0, 0.5, 1.0):
        y = _Scale(1).y(value)
        yield _path("grid", f"M0 {y}H{WIDTH}")


def _rises(curve: Curve, scale: _Scale) -> Iterator[Markup]:
    for segment in curve.segments[:MOST]:
        left, right = scale.x(segment.start), scale.x(segment.stop)
        if right > left:
            yield _path("rise", f"M{left} 0H{right}V{HEIGHT}H{left}Z")


def _band(points: Sequence[ValuePoint], scale: _Scale) -> Iterator[Markup]:
    for measured, run in groupby(points, lambda point: point.low is not None and point.high is not None):
        held = list(run)
        if measured and len(held) > 1:
            tops = [f"{scale.x(p.turn)} {scale.y(p.high or 0.0)}" for p in held]
            bottoms = [f"{scale.x(p.turn)} {scale.y(p.low or 0.0)}" for p in reversed(held)]
            yield _path("band", "M" + "L".join([*tops, *bottoms]) + "Z")
        elif measured:
            x = scale.x(held[0].turn)
            yield _path("whisker", f"M{x} {scale.y(held[0].low or 0.0)}V{scale.y(held[0].high or 0.0)}")


def _line(points: Sequence[ValuePoint], scale: _Scale) -> Iterator[Markup]:
    yield _path("value", "M" + "L".join(f"{scale.x(p.turn)} {scale.y(p.value)}" for p in points))


def _dots(points: Sequence[ValuePoint], scale: _Scale) -> Iterator[Markup]:
    """Strokes without length have round ends, which stay round however the drawing is stretched."""
    for kind, estimated in (("dot", True), ("between", False)):
        shape = "".join(
            f"M{scale.x(p.turn)} {scale.y(p.value)}h0" for p in points if p.estimated == estimated
        )
        if shape and len(points) <= MOST // 2:
            yield _path(kind, shape)


def _ticks(curve: Curve, scale: _Scale) -> Iterator[Markup]:
    """A line below: what is trained on."""
    for trained, run in groupby(enumerate(curve.trained), lambda item: bool(item[1])):
        held = [turn for turn, _ in run]
        kind = "kept" if trained else "spared"
        yield _path(kind, f"M{scale.x(held[0]) + 1} {HEIGHT + 8}H{scale.x(held[-1] + 1) - 1}")


def _places(curve: Curve, points: Sequence[ValuePoint], scale: _Scale, address: str) -> Iterator[Markup]:
    for point in points:
        if point.turn >= len(curve.anchors):
            continue
        left, right = scale.x(point.turn), scale.x(point.turn + 1)
        yield Markup(
            '<a href="{}#turn-{}"><title>{}</title><path class="hit" d="M{} 0H{}V{}H{}Z"/></a>'
        ).format(address, curve.anchors[point.turn], _words(point), left, right, HEIGHT + 14, left)


def _words(point: ValuePoint) -> str:
    bounds = "" if point.low is None or point.high is None else f" ({point.low:.2f} to {point.high:.2f})"
    how = "" if point.estimated else ", put in between"
    samples = f", {point.samples} continuations" if point.samples else ""
    return f"before turn {point.turn}: {point.value:.2f}{bounds}{samples}{how}"
