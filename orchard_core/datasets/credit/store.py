"""Reading a directory of credits, while it is being written too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from orchard_core.datasets.credit.checked import Place
from orchard_core.datasets.credit.head import HEAD_NAME, LINES_NAME, CreditHead, read_head
from orchard_core.datasets.credit.line import decode, scan
from orchard_core.errors import DatasetCorrupt
from orchard_core.types.credit import Credit


class CreditLines(Mapping[str, Credit]):
    """Credits by rollout. Only their places are held; each credit is read when it is asked for, and the last
    line of a rollout counts. Looking one up may raise DatasetCorrupt."""

    def __init__(self, path: Path) -> None:
        """Raises DatasetCorrupt, DatasetError."""
        self._path = path
        self._places: dict[str, Place] = dict(scan(path))

    def __getitem__(self, rollout: str) -> Credit:
        place = self._places[rollout]
        with self._path.open("rb") as stream:
            stream.seek(place.offset)
            line = stream.read(place.length)
        credit = decode(line, path=self._path, row=place.row)
        if credit.rollout != rollout:
            raise DatasetCorrupt("two ids", path=str(self._path), row=place.row, field="rollout")
        return credit

    def __contains__(self, rollout: object) -> bool:
        return rollout in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class Credits:
    """One directory of credits."""

    def __init__(self, root: Path) -> None:
        self.root = root
        """The directory."""
        self.head: CreditHead = read_head(root)
        """Estimator, versions and where they are from."""
        self.by_rollout: Mapping[str, Credit] = CreditLines(root / LINES_NAME)
        """By rollout id, in the order they were assigned."""

    @property
    def settings(self) -> Mapping[str, object]:
        """What decided the result."""
        return self.head.settings

    @property
    def estimator(self) -> str:
        """`judge`, `branch`, or a plugin's own."""
        return self.head.estimator

    def __iter__(self) -> Iterator[Credit]:
        return iter(self.by_rollout.values())

    def __len__(self) -> int:
        return len(self.by_rollout)


def open_credits(path: str | Path) -> Credits:
    """A directory such as `RUN/credit/judge`.

    Raises DatasetNotFound, DatasetCorrupt, and DatasetError for what a newer Orchard wrote.
    """
    return Credits(Path(path))


def holds_credits(path: Path) -> bool:
    """Whether a directory is one of credits."""
    return (path / HEAD_NAME).is_file()
