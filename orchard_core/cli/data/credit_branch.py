"""The estimator `branch`, put together from flags."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pydantic import ValidationError

from orchard_core.cli.data.credit_flags import CreditFlags
from orchard_core.datasets.credit.branch.estimator import BranchEstimator
from orchard_core.datasets.credit.branch.opening import opened_by_name
from orchard_core.datasets.credit.branch.options import BranchOptions
from orchard_core.datasets.credit.estimator import Estimator
from orchard_core.errors import ConfigError
from orchard_core.gateway.server import Gateway
from orchard_core.plugins.invalid import wrong


@asynccontextmanager
async def open_branch(flags: CreditFlags) -> AsyncIterator[Estimator]:
    """The estimator, its gateway listening. Raises ConfigError."""
    options = branch_options(flags)
    async with Gateway() as gateway:
        estimator = BranchEstimator(
            options, flags.rules, open_parts=opened_by_name(gateway), concurrency=flags.concurrency
        )
        try:
            yield estimator
        finally:
            await estimator.close()


def branch_options(flags: CreditFlags) -> BranchOptions:
    """Checked. Raises ConfigError."""
    if flags.judge or flags.judge_options or flags.judge_params:
        raise ConfigError("a judge belongs to --estimator judge", hint="branch asks the run's own model")
    try:
        return BranchOptions.model_validate(dict(flags.options))
    except ValidationError as error:
        raise ConfigError(
            f"orchard data credit: {wrong(error, BranchOptions, noun='option')}",
            hint="docs/how-to/measure-credit.md lists the options of branch",
        ) from error
