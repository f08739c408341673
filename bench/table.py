"""One table for all benches: a figure, its peer or floor as a ratio, what is asked, whether that holds."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar, cast

from orchard_core.cli.exits import Exit
from orchard_core.cli.interrupt import cancelling, run_async

T = TypeVar("T")

MISSED = 1
"""Exit status of a bench that misses a bound."""


class Of(StrEnum):
    """What a bound speaks of."""

    VALUE = "value"
    RATIO = "ratio"
    OVER = "over"


@dataclass(frozen=True, kw_only=True)
class Bound:
    """What is asked of a figure."""

    limit: float
    """In the figure's unit, or a plain number for a ratio."""
    of: Of = Of.VALUE
    """The figure itself, its ratio to the peer, or how far it lies over the peer."""
    least: bool = False
    """True when the limit is the least allowed, not the most."""

    def holds(self, value: float, beside: float) -> bool:
        met = {Of.VALUE: value, Of.RATIO: value / beside if beside else 0.0, Of.OVER: value - beside}[self.of]
        return met >= self.limit if self.least else met <= self.limit

    def words(self, unit: str) -> str:
        sign = ">=" if self.least else "<="
        unit = f" {unit}"
        return (
            f"{sign} "
            + {
                Of.VALUE: f"{self.limit:g}{unit}",
                Of.RATIO: f"{self.limit:g} x",
                Of.OVER: f"{self.limit:g}{unit} over",
            }[self.of]
        )


def at_most(limit: float, of: Of = Of.VALUE) -> Bound:
    return Bound(limit=limit, of=of)


def at_least(limit: float, of: Of = Of.VALUE) -> Bound:
    return Bound(limit=limit, of=of, least=True)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One row."""

    name: str
    """What was measured."""
    value: float
    """What was reached, in `unit`."""
    unit: str
    """Unit of both values."""
    peer: str
    """The peer or floor measured in the same run."""
    beside: float
    """What the peer reached."""
    asked: Bound | None = None
    """None where the row is there to compare only."""

    @property
    def ok(self) -> bool:
        return self.asked is None or self.asked.holds(self.value, self.beside)

    @property
    def ratio(self) -> float:
        """0.0 where the peer reached nothing."""
        return self.value / self.beside if self.beside else 0.0

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "peer": self.peer,
            "peer_value": self.beside,
            "ratio": self.ratio,
            "asked": self.asked.words(self.unit) if self.asked else None,
            "ok": self.ok if self.asked else None,
        }


class Table:
    """Prints each row as it comes, or all of them as one JSON object at the end."""

    def __init__(self, bench: str, *, as_json: bool) -> None:
        self._bench = bench
        self._as_json = as_json
        self._figures: list[Figure] = []
        self._notes: list[str] = []
        self._load = os.getloadavg()[0]
        self._say(f"{bench}: {os.cpu_count()} cores, load {self._load:.1f} at the start")
        heads = ("figure", "reached", "peer or floor", "its value", "ratio", "asked", "")
        self._say("{:<34} {:>14}   {:<32} {:>14} {:>9}   {:<15} {}".format(*heads).rstrip())

    def row(
        self, name: str, value: float, unit: str, *, peer: str, beside: float, asked: Bound | None = None
    ) -> None:
        figure = Figure(name=name, value=value, unit=unit, peer=peer, beside=beside, asked=asked)
        self._figures.append(figure)
        words, verdict = (asked.words(unit), "ok" if figure.ok else "MISSED") if asked else ("", "")
        reached, its = f"{value:,.2f} {unit}", f"{beside:,.2f} {unit}"
        line = (
            f"{name:<34} {reached:>14}   {peer:<32} {its:>14} {figure.ratio:>7.2f} x   {words:<15} {verdict}"
        )
        self._say(line.rstrip())

    def note(self, text: str) -> None:
        """A line that no figure holds, such as a peer left out."""
        self._notes.append(text)
        self._say(f"  {text}")

    def end(self) -> int:
        """Print what is left; 1 when a bound was missed, else 0."""
        missed = [figure.name for figure in self._figures if not figure.ok]
        if self._as_json:
            print(json.dumps(self._whole(), indent=2))
        elif missed:
            print(f"MISSED: {'; '.join(missed)}")
        return MISSED if missed else 0

    def _whole(self) -> dict[str, Any]:
        return {
            "bench": self._bench,
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "cores": os.cpu_count(),
            "load_at_start": self._load,
            "figures": [figure.as_json() for figure in self._figures],
            "notes": self._notes,
            "ok": all(figure.ok for figure in self._figures),
        }

    def _say(self, text: str) -> None:
        if not self._as_json:
            print(text, flush=True)


def options(about: str | None) -> argparse.ArgumentParser:
    """A parser with what every bench takes."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    return parser


def run_as_product(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run it on the very loop that the command line runs on; Ctrl-C ends the bench."""
    value, code = run_async(cancelling(main))
    if code != Exit.OK:
        raise SystemExit(int(code))
    return cast("T", value)
