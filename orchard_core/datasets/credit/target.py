"""Where the credits of a run, of a matrix or of a dataset lie, and what is still missing there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from orchard_core.datasets.credit.candidates import Candidate, row_candidates, run_candidates
from orchard_core.datasets.credit.head import LINES_NAME, CreditHead, credit_directory
from orchard_core.datasets.credit.store import CreditLines
from orchard_core.datasets.credit.writer import check_same
from orchard_core.datasets.reading import Source, SourceKind, find_source, run_directories
from orchard_core.errors import ConfigError, CreditRefused
from orchard_core.types.credit import Credit


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One run or dataset, and its directory of credits."""

    source: Source
    """The run, the dataset or the file."""
    directory: Path
    """Where its credits lie or will lie."""

    def candidates(self) -> Iterator[Candidate]:
        """Its rollouts, in order, read as they are asked for."""
        if self.source.kind is SourceKind.RUN:
            return run_candidates(self.source.path, self.directory)
        return row_candidates(self.source, self.directory)

    def before(self, head: CreditHead) -> Mapping[str, Credit]:
        """Credits that are there. Raises ConfigError when they have other settings, DatasetCorrupt."""
        check_same(self.directory, head)
        return CreditLines(self.directory / LINES_NAME)


def find_targets(path: str | Path, *, name: str, out: str | Path | None = None) -> list[Target]:
    """One for a run or a dataset, one a cell for a matrix.

    The credits of a run lie in `RUN/credit/NAME`, those of a dataset or file in `out`. Raises ConfigError for
    a missing or needless `out`, CreditRefused for a matrix without a run, and what `find_source` raises.
    """
    source = find_source(path)
    if source.kind in (SourceKind.RUN, SourceKind.MATRIX):
        if out is not None:
            raise ConfigError(
                f"the credits of {path} lie in it, in {credit_directory(Path(path), name)}",
                hint="leave --out away, or use --name for a second set of credits",
            )
        runs = [Source(path=run, kind=SourceKind.RUN) for run in run_directories(source)]
        if not runs:
            raise CreditRefused(f"no cell of the matrix {path} has run", hint=f"orchard matrix --out {path}")
        return [Target(source=run, directory=credit_directory(run.path, name)) for run in runs]
    if out is None:
        raise ConfigError(
            f"{path} is a {source.kind.value}, which nothing is written into", hint="say where with --out DIR"
        )
    return [Target(source=source, directory=Path(out))]


def is_done(candidate: Candidate, credit: Credit | None, *, retry_failed: bool) -> bool:
    """Whether a credit that is there stands: of the rollout as it is now, and not to be tried again."""
    if credit is None or credit.again or (retry_failed and credit.error):
        return False
    return candidate.is_of(credit)
