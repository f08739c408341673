"""Measuring credit from Python."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

from orchard_core.datasets.credit.assign import AssignOptions
from orchard_core.datasets.credit.branch.estimator import NAME, BranchEstimator
from orchard_core.datasets.credit.branch.opening import opened_by_name
from orchard_core.datasets.credit.branch.options import BranchOptions
from orchard_core.datasets.credit.candidates import PASSED
from orchard_core.datasets.credit.front import assigned
from orchard_core.datasets.credit.head import CreditHead
from orchard_core.datasets.credit.rules import CreditRules
from orchard_core.datasets.credit.target import find_targets
from orchard_core.gateway.server import Gateway
from orchard_core.types.credit import Credit


async def measure_credit(
    path: str | Path,
    *,
    branches: BranchOptions | None = None,
    rules: CreditRules | None = None,
    threshold: float = PASSED,
    name: str = NAME,
    options: AssignOptions | None = None,
) -> AsyncGenerator[Credit, None]:
    """New credits of a run or a matrix, each durable before it is given; the same call goes on.

    `options.concurrency` bounds the continuations that run at once as well. Cells of a matrix that cannot be
    continued are left out with a warning in the log. Raises CreditRefused when none can, ConfigError, and
    what `find_targets` and `Assignment.credits` raise.
    """
    targets = find_targets(path, name=name)
    options = options or AssignOptions()
    async with Gateway() as gateway:
        estimator = BranchEstimator(
            branches or BranchOptions(),
            rules or CreditRules(),
            open_parts=opened_by_name(gateway),
            concurrency=options.concurrency,
        )
        head = CreditHead.of(estimator, threshold=threshold, source=path)
        try:
            async with aclosing(assigned(targets, estimator, head, threshold, options)) as found:
                async for credit in found:
                    yield credit
        finally:
            await estimator.close()
