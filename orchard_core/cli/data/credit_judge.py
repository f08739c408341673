"""The estimator `judge`, put together from flags."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pydantic import ValidationError

from orchard_core.cli.data.credit_flags import CreditFlags
from orchard_core.cli.recipe import without_secrets
from orchard_core.datasets.credit.estimator import Estimator
from orchard_core.datasets.credit.judge.estimator import JudgeEstimator
from orchard_core.datasets.credit.judge.model import JudgeSettings, ModelJudge
from orchard_core.datasets.credit.judge.models import JudgeModels
from orchard_core.errors import ConfigError
from orchard_core.gateway.server import Gateway
from orchard_core.plugins.invalid import wrong


@asynccontextmanager
async def open_judge(flags: CreditFlags) -> AsyncIterator[Estimator]:
    """The estimator, its gateway listening. Raises ConfigError."""
    settings = judge_settings(flags)
    async with Gateway() as gateway, JudgeModels(flags.judge, flags.judge_options) as models:
        judge = ModelJudge(settings, gateway=gateway, model_for=models)
        yield JudgeEstimator(judge, flags.rules)


def judge_settings(flags: CreditFlags) -> JudgeSettings:
    """Checked. Raises ConfigError."""
    if not flags.judge:
        raise ConfigError(
            "no judge was named",
            hint="--judge MODEL, such as openai:NAME; --judge self asks each trajectory's own model",
        )
    if flags.options:
        raise ConfigError(
            "--option and --max-rollouts belong to --estimator branch", hint="a judge's are --judge-option"
        )
    try:
        return JudgeSettings(
            judge=flags.judge,
            options=without_secrets(flags.judge_options),
            params=without_secrets(flags.judge_params),
            template=flags.template,
            context_tokens=flags.context_tokens,
        )
    except ValidationError as error:
        raise ConfigError(
            f"orchard data credit: {wrong(error, JudgeSettings, noun='setting')}",
            hint="orchard data credit --help lists what each takes",
        ) from error
    except ValueError as error:
        raise ConfigError(
            f"orchard data credit: {error}", hint="keys come from the environment alone"
        ) from error
