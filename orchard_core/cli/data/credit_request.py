"""What the flags of `orchard data credit` mean, checked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from orchard_core.cli.options import key_values
from orchard_core.datasets.credit.rules import CreditRules
from orchard_core.errors import ConfigError
from orchard_core.plugins.invalid import wrong


def named(path: Path | None) -> Path:
    """The path. Raises ConfigError when none was given."""
    if path is None:
        raise ConfigError("no run was named", hint="orchard data credit runs/NAME --judge MODEL")
    return path


def judge_options(pairs: Sequence[str] | None, base_url: str | None) -> dict[str, Any]:
    """Options of the judge's model. Raises ConfigError for a pair that is none and for two addresses."""
    options = key_values(pairs or (), "--judge-option")
    if base_url is not None and options.setdefault("base_url", base_url) != base_url:
        raise ConfigError("--base-url and --judge-option base_url= differ", hint="give one of them")
    return options


def rules_of(**fields: object) -> CreditRules:
    """The rules of curve and segments. Raises ConfigError."""
    try:
        return CreditRules.model_validate(fields)
    except ValidationError as error:
        raise ConfigError(
            f"orchard data credit: {wrong(error, CreditRules, noun='setting')}",
            hint="orchard data credit --help lists what each takes",
        ) from error


def branch_options(pairs: Sequence[str] | None, max_rollouts: int | None) -> dict[str, Any]:
    """Options of the estimator `branch`. Raises ConfigError for a pair that is none."""
    options = key_values(pairs or (), "--option")
    return options if max_rollouts is None else {**options, "max_rollouts": max_rollouts}
