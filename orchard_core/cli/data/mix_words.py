"""What came of a mix, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from orchard_core.datasets.mix.outcome import MixOutcome
from orchard_core.datasets.store.manifest import Manifest, SourceReport
from orchard_core.evals.clean import clean_line

_NAME = 40
_WHY = 120


def tables(sources: Sequence[SourceReport]) -> Iterator[tuple[Sequence[str], list[list[str]]]]:
    """Heads and rows: what each source gave, and what of it was left out."""
    kept = [
        [clean_line(source.name, _NAME), clean_line(source.kind, _NAME), _share(source.weight)]
        + [f"{number:,}" for number in (source.read, source.kept, sum(source.dropped.values()))]
        for source in sources
    ]
    yield ("source", "kind", "share", "read", "kept", "left out"), kept
    reasons = list(dict.fromkeys(reason for source in sources for reason in source.dropped))
    if reasons:
        rows = [[reason, *(f"{source.dropped.get(reason, 0):,}" for source in sources)] for reason in reasons]
        yield ("left out by", *(clean_line(source.name, _NAME) for source in sources)), rows


def _share(weight: float | None) -> str:
    return "all" if weight is None else f"{weight:.1%}"


def dry_lines(told: MixOutcome) -> Iterator[str]:
    """Examples, strata and the sum."""
    for example in told.examples:
        name = f"{clean_line(example.source, _NAME)} row {example.row} ({clean_line(example.id, _NAME)})"
        yield f"{example.reason}: {name}: {clean_line(example.why, _WHY)}"
    for stratum in told.strata:
        if stratum.values:
            values = ", ".join(f"{name} {clean_line(value, _NAME)}" for name, value in stratum.values.items())
            where = f"{stratum.split}, {clean_line(stratum.source, _NAME)}, {values}"
            yield f"{where}: {stratum.taken:,} of {stratum.rows:,}"
    yield from (f"note: {clean_line(note, 500)}" for note in told.notes)
    splits = ", ".join(f"{name} {rows:,}" for name, rows in told.splits.items())
    again = f", {told.repeats:,} of them repeats" if told.repeats else ""
    yield f"would write {told.rows:,} rows{again}: {splits}"


def made_lines(manifest: Manifest, root: Path) -> Iterator[str]:
    """Splits and the place."""
    for name, totals in manifest.splits.items():
        counts = f"{totals.rows:,} rows, {totals.trained_turns:,} trained turns, {totals.tokens:,} tokens"
        yield f"{name}: {counts}"
    yield from (f"note: {clean_line(note, 500)}" for note in manifest.made.notes)
    files = f"{len(manifest.shards)} file{'' if len(manifest.shards) == 1 else 's'}"
    yield f"wrote {manifest.rows:,} rows in {files} to {clean_line(str(root), 500)}"
