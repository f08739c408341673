"""Assigning credit from Python."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from pathlib import Path

from pydantic import JsonValue

from orchard_core.datasets.credit.assign import Assignment, AssignOptions
from orchard_core.datasets.credit.candidates import PASSED
from orchard_core.datasets.credit.estimator import Estimator
from orchard_core.datasets.credit.head import CreditHead
from orchard_core.datasets.credit.judge.contract import Judge
from orchard_core.datasets.credit.judge.estimator import JudgeEstimator
from orchard_core.datasets.credit.judge.model import JudgeSettings, ModelJudge
from orchard_core.datasets.credit.judge.models import JudgeModels
from orchard_core.datasets.credit.rules import CreditRules
from orchard_core.datasets.credit.target import Target, find_targets
from orchard_core.gateway.server import Gateway
from orchard_core.types.credit import Credit

_LOG = logging.getLogger("orchard.datasets")


async def assign_credit(
    path: str | Path,
    *,
    judge: str | Judge,
    judge_options: Mapping[str, JsonValue] | None = None,
    rules: CreditRules | None = None,
    threshold: float = PASSED,
    name: str = "judge",
    out: str | Path | None = None,
    options: AssignOptions | None = None,
) -> AsyncGenerator[Credit, None]:
    """New credits of a run, a matrix or a dataset, each durable before it is given; the same call goes on.

    `judge` is a model's written form, `self`, or a judge of your own, which is closed at the end. Nothing is
    asked before money is spent: `options.max_usd` bounds it, and `orchard data credit --dry-run` tells it.
    Cells that cannot be judged are left out with a warning in the log, unless none can.
    Raises what `find_targets` and `Assignment.credits` raise.
    """
    targets = find_targets(path, name=name, out=out)
    async with AsyncExitStack() as stack:
        estimator = await _estimator(stack, judge, judge_options or {}, rules or CreditRules())
        stack.push_async_callback(estimator.close)
        head = CreditHead.of(estimator, threshold=threshold, source=path)
        async with aclosing(assigned(targets, estimator, head, threshold, options)) as found:
            async for credit in found:
                yield credit


async def assigned(
    targets: Sequence[Target],
    estimator: Estimator,
    head: CreditHead,
    threshold: float,
    options: AssignOptions | None,
) -> AsyncGenerator[Credit, None]:
    """New credits of these; the log warns of each target that the estimator refuses as a whole."""
    work = Assignment(
        targets=targets,
        estimator=estimator,
        head=head,
        threshold=threshold,
        options=options or AssignOptions(),
    )
    try:
        async with aclosing(work.credits()) as found:
            async for credit in found:
                yield credit
    finally:
        for path, reason in work.refused.items():
            _LOG.warning("%s was left out: %s", path, reason)


async def _estimator(
    stack: AsyncExitStack, judge: str | Judge, options: Mapping[str, JsonValue], rules: CreditRules
) -> Estimator:
    if not isinstance(judge, str):
        return JudgeEstimator(judge, rules)
    gateway = await stack.enter_async_context(Gateway())
    models = await stack.enter_async_context(JudgeModels(judge, options))
    settings = JudgeSettings(judge=judge, options=options)
    return JudgeEstimator(ModelJudge(settings, gateway=gateway, model_for=models), rules)
