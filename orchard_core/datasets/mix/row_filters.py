"""The filters that look at one row alone, in the order of `Drop`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchard_core.datasets.mix.actions import defined_in, faults, speaks
from orchard_core.datasets.mix.filters import FAILED, Drop, MixFilters
from orchard_core.datasets.mix.recipe import MixWhere
from orchard_core.datasets.mix.where import outcome_of, unmet
from orchard_core.errors import DatasetCorrupt
from orchard_core.types.dataset import DatasetRow
from orchard_core.types.harness import StopReason
from orchard_core.types.sample import SampleLabel


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Why a row is dropped."""

    drop: Drop
    """Under what it is counted."""
    why: str
    """In words, for whoever asks."""


class RowFilters:
    """Speaks about the rows of one source."""

    def __init__(self, where: MixWhere, filters: MixFilters) -> None:
        self._where = where
        self._filters = filters
        self._said = speaks(filters.format_errors)

    def __call__(self, row: DatasetRow, messages: Sequence[Mapping[str, Any]]) -> Verdict | None:
        """None: nothing is wrong with it, its mask aside; `messages` are the row's, parsed. Raises
        DatasetCorrupt, with no place, for a row whose mask or `tools` do not fit."""
        if why := unmet(row, self._where):
            return Verdict(drop=Drop.NOT_SELECTED, why=why)
        return self._by_facts(row) or self._by_actions(row, messages)

    def _by_facts(self, row: DatasetRow) -> Verdict | None:
        asked = self._filters
        if asked.failed and row.outcome in FAILED:
            return Verdict(drop=Drop.FAILED, why=f"its outcome is {outcome_of(row)}")
        if asked.unscored and row.reward is None:
            return Verdict(drop=Drop.UNSCORED, why="it has no score")
        if asked.max_tokens is not None and row.token_count > asked.max_tokens:
            return Verdict(drop=Drop.OVER_LONG, why=f"it has {row.token_count:,} tokens")
        return None

    def _by_actions(self, row: DatasetRow, messages: Sequence[Mapping[str, Any]]) -> Verdict | None:
        if len(messages) != len(row.mask):
            raise DatasetCorrupt(
                f"has {len(row.mask)} entries for {len(messages)} messages", path=row.id, field="mask"
            )
        names = defined_in(row.tools)
        found = faults(messages, row.mask, names, self._said)
        if self._filters.undefined_tools and found.undefined:
            return Verdict(drop=Drop.UNDEFINED_TOOLS, why=found.undefined)
        if self._filters.unparsable and (why := found.unparsable or self._end(row)):
            return Verdict(drop=Drop.UNPARSABLE, why=why)
        return None

    def _end(self, row: DatasetRow) -> str:
        """What stands beside the messages and is wrong with the row's last answer, where that is trained."""
        if self._said is None or not row.mask or not row.mask[-1]:
            return ""
        if row.label is SampleLabel.MAIN and row.provenance.get("stop") == StopReason.MALFORMED:
            return "the harness ended at its last answer, the last of several that it could not act on"
        if any(self._said(message.get("content")) for message in _said_after(row)):
            return "the harness could not act on its last answer"
        return ""

    def untrained(self, row: DatasetRow) -> Verdict | None:
        """The same of its mask, once credit was put on it."""
        if self._filters.untrained and 1 not in row.mask:
            return Verdict(drop=Drop.UNTRAINED, why="none of its messages is trained on")
        return None


def _said_after(row: DatasetRow) -> list[Mapping[str, Any]]:
    """What was said to the row's last answer and stands beside its messages (see `rows.rollout_rows`): some
    harnesses give an answer up that they could not act on, and go on as if it had not been."""
    told = (row.metadata.get(name) for name in ("last_observations", "sent_instead"))
    listed = (value for value in told if isinstance(value, list))
    return [message for value in listed for message in value if isinstance(message, dict)]
