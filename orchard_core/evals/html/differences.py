"""Pairs of cells, the clearest difference first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchard_core.evals.html.view import CellView
from orchard_core.evals.matrix_report import PairedDifference
from orchard_core.evals.significant import is_significant

SHOWN = 15
"""Pairs in the first table, unless more are significant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two cells."""

    left: CellView
    """The one."""
    right: CellView
    """The other."""
    found: PairedDifference
    """The figures."""

    @property
    def held(self) -> bool:
        """It is significant after correction."""
        return is_significant(self.found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """Every pair."""

    first: Sequence[Pair]
    """The clearest ones."""
    rest: Sequence[Pair]
    """The others, none of them significant."""


def ranked(differences: Sequence[PairedDifference], cells: Sequence[CellView]) -> Ranked:
    """By corrected p-value, then by p-value; what has none comes last."""
    by_key = {view.cell.key: view for view in cells}
    pairs = [Pair(left=by_key[item.left], right=by_key[item.right], found=item) for item in differences]
    pairs.sort(key=lambda pair: (_last(pair.found.p_adjusted), _last(pair.found.p_value)))
    shown = max(SHOWN, sum(pair.held for pair in pairs))
    return Ranked(first=pairs[:shown], rest=pairs[shown:])


def _last(p: float | None) -> float:
    return 2.0 if p is None else p
