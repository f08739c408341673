"""Which lines a list shows: filters, counts of what they would leave, order, pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from urllib.parse import urlencode

from orchard_core.viewer.sources.line import Line

PAGE = 100
"""Lines of one page."""
_LONGEST = 300
_MOST_VALUES = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Facet:
    """Something that lines are told apart by."""

    name: str
    """As in an address."""
    title: str
    """For people."""
    of: Callable[[Line], Iterable[str]]
    """A line's values."""


FACETS = (
    Facet(name="score", title="Score", of=lambda line: (line.passed,)),
    Facet(
        name="outcome", title="Outcome", of=lambda line: (line.outcome.value if line.outcome else "unknown",)
    ),
    Facet(
        name="whose",
        title="Whose doing",
        of=lambda line: (line.attribution.value if line.attribution else "",),
    ),
    Facet(name="harness", title="Harness", of=lambda line: (line.harness,)),
    Facet(name="model", title="Model", of=lambda line: (line.model,)),
    Facet(name="taskset", title="Task set", of=lambda line: (line.taskset,)),
    Facet(name="tag", title="Tag", of=lambda line: line.tags),
    Facet(name="label", title="Conversation", of=lambda line: (line.label,)),
    Facet(name="split", title="Split", of=lambda line: (line.split,)),
    Facet(name="mixed", title="Source", of=lambda line: (line.mixed_from,)),
    Facet(name="credit", title="Credit", of=lambda line: line.credit or ("none",)),
    Facet(name="task", title="Task", of=lambda line: (line.task,)),
)


def _number(value: float | None) -> tuple[bool, float]:
    return (value is None, value or 0.0)


ORDERS: Mapping[str, Callable[[Line], object]] = {
    "": lambda line: 0,
    "task": lambda line: (line.task, line.attempt),
    "score": lambda line: _number(line.score),
    "turns": lambda line: line.turns,
    "tokens": lambda line: line.tokens,
    "cost": lambda line: _number(line.cost_usd),
    "time": lambda line: _number(line.seconds),
}
"""By name; the empty one is the order in which they were planned. `-` before a name turns it round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What an address asks for."""

    chosen: Mapping[str, str] = field(default_factory=dict)
    """Value of each facet that was chosen."""
    text: str = ""
    """Words to be found."""
    order: str = ""
    """Name of an order, `-` before it for the other way round."""
    page: int = 1
    """From 1."""

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Wanted:
        """What is not known is passed over; what is too long is cut."""
        known = {facet.name for facet in FACETS}
        order = query.get("sort", "")
        page = query.get("page", "")
        return cls(
            chosen={name: query[name][:_LONGEST] for name in known if query.get(name)},
            text=query.get("q", "")[:_LONGEST],
            order=order if order.removeprefix("-") in ORDERS else "",
            page=int(page) if page.isascii() and page.isdigit() and 0 < len(page) < 8 else 1,
        )

    @property
    def is_all(self) -> bool:
        """Nothing is filtered."""
        return not self.chosen and not self.text

    def query(self, **changes: str) -> str:
        """An address's query with these changes; an empty value takes a part out."""
        parts = {"q": self.text, "sort": self.order, **self.chosen}
        parts |= {"page": str(self.page) if self.page > 1 and not changes else "", **changes}
        made = urlencode({name: value for name, value in parts.items() if value}, errors="replace")
        return f"?{made}" if made else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetView:
    """A facet with what can be chosen in it."""

    name: str
    """As in an address."""
    title: str
    """For people."""
    values: Sequence[tuple[str, int]]
    """Each value and how many lines have it, the other filters as they are."""
    chosen: str
    """The chosen one; empty: none."""
    more: int
    """Values that are not listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A list as it is shown."""

    wanted: Wanted
    """What was asked for."""
    lines: Sequence[Line]
    """All that fit, in order."""
    shown: Sequence[Line]
    """Those of this page."""
    facets: Sequence[FacetView]
    """What can be chosen."""
    pages: int
    """How many pages there are."""
    varied: Set[str]
    """Names of the facets in which the lines of the whole source differ: what needs a column."""


def narrowed(lines: Sequence[Line], wanted: Wanted, hits: Set[str] | None = None) -> list[Line]:
    """The lines that fit, in order. `hits` are addresses in whose text the words were found."""
    found = _texted(lines, wanted.text, hits)
    for facet in FACETS:
        if value := wanted.chosen.get(facet.name):
            found = [line for line in found if value in facet.of(line)]
    if wanted.order:
        by = ORDERS[wanted.order.removeprefix("-")]
        found = sorted(found, key=by, reverse=wanted.order.startswith("-"))  # type: ignore[arg-type]
    return list(found)


def listing(lines: Sequence[Line], wanted: Wanted, hits: Set[str] | None = None) -> Listing:
    """A page of the lines that fit, and the choices there are."""
    found = narrowed(lines, wanted, hits)
    pages = max(1, -(-len(found) // PAGE))
    page = min(wanted.page, pages)
    return Listing(
        wanted=replace(wanted, page=page),
        lines=found,
        shown=found[(page - 1) * PAGE : page * PAGE],
        facets=_facets(_texted(lines, wanted.text, hits), found, wanted),
        pages=pages,
        varied={facet.name for facet in FACETS if _varies(lines, facet)},
    )


def _varies(lines: Sequence[Line], facet: Facet) -> bool:
    seen: set[str] = set()
    for line in lines:
        seen.update(facet.of(line))
        if len(seen) > 1:
            return True
    return False


def _texted(lines: Sequence[Line], text: str, hits: Set[str] | None) -> Sequence[Line]:
    if not text:
        return lines
    low = text.casefold()
    return [line for line in lines if (hits and line.address in hits) or low in _facts(line)]


def _facts(line: Line) -> str:
    return "\n".join((line.task, line.id, line.error, *line.tags)).casefold()


def _facets(lines: Sequence[Line], found: Sequence[Line], wanted: Wanted) -> list[FacetView]:
    views = []
    for facet in FACETS:
        chosen = wanted.chosen.get(facet.name, "")
        pool = found
        if chosen:
            others = {name: value for name, value in wanted.chosen.items() if name != facet.name}
            pool = narrowed(lines, Wanted(chosen=others))
        counts = Counter(value for line in pool for value in facet.of(line) if value)
        if len(counts) > 1 or chosen:
            values = sorted(counts.most_common(_MOST_VALUES), key=lambda item: (-item[1], item[0]))
            views.append(
                FacetView(
                    name=facet.name,
                    title=facet.title,
                    values=values,
                    chosen=chosen,
                    more=len(counts) - len(values),
                )
            )
    return views


def beside(lines: Sequence[Line], line: Line) -> tuple[Line | None, Line | None]:
    """The lines before and after one in a list; None where there is none."""
    place = next((at for at, other in enumerate(lines) if other.address == line.address), None)
    if place is None:
        return None, None
    before = lines[place - 1] if place else None
    return before, lines[place + 1] if place + 1 < len(lines) else None
