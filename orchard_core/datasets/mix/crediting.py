"""Credit of a source's rollouts, put on its rows."""

from __future__ import annotations

from pathlib import Path

from orchard_core.datasets.credit.apply import apply_credit
from orchard_core.datasets.credit.store import holds_credits, open_credits
from orchard_core.datasets.mix.filters import Drop
from orchard_core.datasets.mix.recipe import MixSource
from orchard_core.datasets.mix.row_filters import Verdict
from orchard_core.errors import DatasetNotFound
from orchard_core.types.dataset import DatasetRow


class Crediting:
    """Puts credit on rows; does nothing for a source without."""

    def __init__(self, source: MixSource) -> None:
        """Raises DatasetNotFound, DatasetCorrupt."""
        self._named = bool(source.credit)
        self._credits = [open_credits(place) for place in credit_places(source)]

    def __call__(self, row: DatasetRow) -> tuple[DatasetRow, Verdict | None]:
        """The row with its credit; dropped when its rollout has none. Raises CreditRefused,
        DatasetCorrupt."""
        if not self._named:
            return row, None
        for told in self._credits:
            if row.rollout in told.by_rollout:
                return apply_credit(row, told.by_rollout[row.rollout]), None
        return row, Verdict(drop=Drop.UNCREDITED, why="its rollout has no credit there")


def credit_places(source: MixSource) -> list[Path]:
    """The credit's directories: the one named, or those of this name in a run or in a matrix's cells; none
    where the source names no credit. Raises DatasetNotFound."""
    if not source.credit:
        return []
    given, root = Path(source.credit), Path(source.path)
    if holds_credits(given):
        return [given]
    found = [root / "credit" / source.credit, *sorted(root.glob(f"cells/*/credit/{given.name}"))]
    places = [place for place in found if holds_credits(place)]
    if not places:
        raise DatasetNotFound(
            f"source {source.name}: {source.credit!r} is no directory of credits, nor the name of one there",
            hint=f"make it first: orchard data credit {source.path}",
        )
    return places
