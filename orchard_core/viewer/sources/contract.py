"""What every source gives to the pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from orchard_core.viewer.pieces import Piece
from orchard_core.viewer.sources.line import Line
from orchard_core.viewer.trace.cutting import Room
from orchard_core.viewer.trace.parts import Trace
from orchard_core.viewer.trace.tokens import SampledToken


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """The lines of a source at one moment."""

    lines: Sequence[Line]
    """In order."""
    by_key: Mapping[str, int]
    """Place of each key; of a matrix: of `SOURCE/KEY`."""
    planned: int
    """How many there will be."""
    stamp: tuple[object, ...]
    """Changes when anything does."""
    note: str = ""
    """What the user should know, such as lines left out."""


class Source(Protocol):
    """A run, a matrix or a dataset. Every method may be called from several threads."""

    @property
    def key(self) -> str:
        """What names it in an address, such as `1` or, for a cell of a matrix, `1.2`."""

    @property
    def kind(self) -> str:
        """`run`, `matrix` or `dataset`."""

    @property
    def root(self) -> Path:
        """Where it lies."""

    @property
    def title(self) -> str:
        """For people."""

    def facts(self) -> Mapping[str, str]:
        """What is known of the whole, by name."""

    def lines(self) -> Lines:
        """Its rollouts or rows now."""

    def trace(self, line: Line, *, first: int = 0, room: Room | None = None, samples: bool = True) -> Trace:
        """One of them to read, from turn `first` on; without `samples` what they cost is spared.

        Raises OrchardError.
        """

    def piece(self, line: Line, ref: str) -> Piece | None:
        """A whole piece that a page shows in part; None: there is no such. Raises OrchardError."""

    def tokens(self, line: Line, number: int) -> Sequence[SampledToken]:
        """The sampled tokens of one turn. Raises OrchardError."""

    def texts(self, line: Line) -> Iterator[tuple[int, str]]:
        """Number and words of each turn, for an index. Raises OrchardError."""

    def raw(self, line: Line) -> bytes:
        """Its whole record as JSON. Raises OrchardError."""
