"""One ledger's entries, sums and recent removals, without a store."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile

from orchard_env.service.state.values import Amounts, Full, Ledger

FORGOTTEN_S = 600.0
"""A removal is remembered so long: no list of what stands is older."""


class LedgerBook:
    """Entries and their sums. Times are seconds of the caller's clock."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[Amounts, float]] = {}
        self._dropped: dict[str, float] = {}
        self._totals: list[int] = []

    @property
    def removals(self) -> int:
        """How many are remembered."""
        return len(self._dropped)

    def hold(self, entry: str, amounts: Amounts, limits: Amounts, now: float) -> Full | None:
        """As Ledgers.hold."""
        before = self._entries[entry][0] if entry in self._entries else (0,) * len(amounts)
        for index, (new, old, limit) in enumerate(zip(amounts, before, limits, strict=True)):
            used = self._totals[index] if self._totals else 0
            if limit >= 0 and new > old and used - old + new > limit:
                return Full(index=index, used=used, limit=limit)
        self._put(entry, amounts, now)
        return None

    def drop(self, entry: str, now: float) -> None:
        """As Ledgers.drop."""
        self._remove(entry)
        self._dropped.pop(entry, None)
        self._dropped[entry] = now
        self._forget(now - FORGOTTEN_S)

    def settle(self, standing: Mapping[str, Amounts], seen: float, grace_s: float) -> None:
        """As Ledgers.settle; `seen` is when that stood."""
        for entry, (_, made) in list(self._entries.items()):
            if entry not in standing and made <= seen - grace_s:
                self._remove(entry)
        for entry, amounts in standing.items():
            if self._dropped.get(entry, seen - 1.0) < seen:
                self._put(entry, amounts, self._entries[entry][1] if entry in self._entries else seen)
        self._forget(seen - FORGOTTEN_S)

    def read(self) -> Ledger:
        """As Ledgers.read."""
        entries = {entry: amounts for entry, (amounts, _) in self._entries.items()}
        return Ledger(entries=entries, totals=tuple(self._totals) if entries else ())

    def made_since(self, when: float) -> dict[str, Amounts]:
        """The entries made or changed since then."""
        return {entry: amounts for entry, (amounts, made) in self._entries.items() if made >= when}

    def _forget(self, before: float) -> None:
        """Removals of before then; they stand in their order."""
        old = [*takewhile(lambda entry: self._dropped[entry] <= before, self._dropped)]
        for entry in old:
            del self._dropped[entry]

    def _put(self, entry: str, amounts: Amounts, made: float) -> None:
        self._remove(entry)
        self._dropped.pop(entry, None)
        self._entries[entry] = (amounts, made)
        self._add(amounts, 1)

    def _remove(self, entry: str) -> None:
        if entry in self._entries:
            self._add(self._entries.pop(entry)[0], -1)

    def _add(self, amounts: Amounts, sign: int) -> None:
        self._totals = self._totals or [0] * len(amounts)
        self._totals = [total + sign * one for total, one in zip(self._totals, amounts, strict=True)]
