"""The estimators that `orchard data credit` knows, and one of them opened for what it works on."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchard_core.cli.data.credit_flags import CreditFlags
from orchard_core.datasets.credit.estimator import Estimator
from orchard_core.datasets.credit.head import CreditHead, credit_directory
from orchard_core.datasets.credit.target import Target, find_targets
from orchard_core.errors import ConfigError

if TYPE_CHECKING:
    from orchard_core.datasets.credit.branch.options import RiseBy

Opener = Callable[[CreditFlags], AbstractAsyncContextManager[Estimator]]


def _open_judge(flags: CreditFlags) -> AbstractAsyncContextManager[Estimator]:
    from orchard_core.cli.data.credit_judge import open_judge

    return open_judge(flags)


def _open_branch(flags: CreditFlags) -> AbstractAsyncContextManager[Estimator]:
    from orchard_core.cli.data.credit_branch import open_branch

    return open_branch(flags)


@asynccontextmanager
async def _reusing(asked: Asked) -> AsyncIterator[Estimator]:
    """Earlier credits under other rules. Raises ConfigError when they would be those to be written."""
    from orchard_core.datasets.credit.reuse import ReusingEstimator

    flags = asked.flags
    if flags.name == flags.reuse or flags.out is not None:
        raise ConfigError(
            "--reuse needs another --name, within the run", hint="--reuse judge --name judge-strict"
        )
    if flags.judge or flags.judge_options or flags.judge_params:
        raise ConfigError("--reuse asks nobody, so no judge is named with it", hint="leave --judge away")
    places = {target.directory: credit_directory(target.source.path, flags.reuse) for target in asked.targets}
    yield ReusingEstimator(places, flags.rules, rise_by=_rise_by(flags.options))


def _rise_by(options: Mapping[str, Any]) -> RiseBy | None:
    """Of the options of branch the one that can be told anew. Raises ConfigError for others."""
    from orchard_core.datasets.credit.branch.options import RiseBy

    if others := sorted(options.keys() - {"rise_by"}):
        raise ConfigError(
            f"--reuse measures nothing, so {', '.join(others)} cannot be chosen",
            hint="only --option rise_by can; or measure with another --name and without --reuse",
        )
    try:
        return RiseBy(options["rise_by"]) if options else None
    except ValueError:
        raise ConfigError(f"rise_by is {options['rise_by']!r}", hint=f"it is {' or '.join(RiseBy)}") from None


ESTIMATORS: Mapping[str, Opener] = {"judge": _open_judge, "branch": _open_branch}
"""By what users write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a start works on."""

    flags: CreditFlags
    """What was asked for."""
    targets: Sequence[Target]
    """Where."""

    @classmethod
    def of(cls, flags: CreditFlags) -> Asked:
        """Raises ConfigError for an unknown estimator, and what `find_targets` raises."""
        if math.isnan(flags.threshold):
            raise ConfigError("--threshold is no number", hint="1.0, as in reports, or less")
        if flags.estimator not in ESTIMATORS:
            raise ConfigError(
                f"there is no estimator {flags.estimator!r}", hint=f"there are {', '.join(ESTIMATORS)}"
            )
        return cls(flags=flags, targets=find_targets(flags.path, name=flags.name, out=flags.out))

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[tuple[Estimator, CreditHead]]:
        """The estimator, closed at the end, and what its directories say of themselves."""
        flags = self.flags
        opener = _reusing(self) if flags.reuse else ESTIMATORS[flags.estimator](flags)
        async with opener as estimator:
            try:
                yield estimator, CreditHead.of(estimator, threshold=flags.threshold, source=flags.path)
            finally:
                await estimator.close()
