"""The leak check as a filter: each task is looked at once."""

from __future__ import annotations

from orchard_core.datasets.mix.filters import Drop
from orchard_core.datasets.mix.recipe import MixLeaks
from orchard_core.datasets.mix.row_filters import Verdict
from orchard_core.errors import MixRefused
from orchard_core.types.dataset import DatasetRow

_HELD = 100_000
"""Tasks whose verdict is held."""


class Leaking:
    """Speaks about the rows of one source."""

    def __init__(self, leaks: MixLeaks) -> None:
        """Reads the benchmarks. Raises ConfigError, DatasetCorrupt, and what a task set raises."""
        from orchard_core.datasets.leaks.check import LeakCheck
        from orchard_core.datasets.leaks.report import LeakSettings

        settings = LeakSettings(**leaks.model_dump(include=set(LeakSettings.model_fields)))
        self._check = LeakCheck.against(*leaks.against, settings=settings)
        self._refuse = leaks.action == "refuse"
        self._known: dict[tuple[str, str, str], str] = {}

    def __call__(self, row: DatasetRow) -> Verdict | None:
        """None: it is none of the benchmarks'. Raises MixRefused where the recipe refuses such rows."""
        from orchard_core.datasets.similar.tasks import task_of

        key = (row.taskset, row.task, row.task_text)
        if key not in self._known:
            if len(self._known) >= _HELD:
                self._known.clear()
            leak = self._check.task(task_of(row))
            self._known[key] = f"its task is {leak.benchmark_task!r} of {leak.benchmark}" if leak else ""
        why = self._known[key]
        if not why and self._check.settings.conversations and (leak := self._check.conversation(row)):
            why = f"its messages hold task {leak.benchmark_task!r} of {leak.benchmark}"
        if why and self._refuse:
            raise MixRefused(
                f"row {row.id} leaks: {why}",
                hint="leave its source or task out by `where`, or let `leaks.action` be `drop`",
            )
        return Verdict(drop=Drop.LEAKS, why=why) if why else None
