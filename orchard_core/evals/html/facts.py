"""Where the figures come from: what holds for every cell is said once, what differs cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from orchard_core.evals.html.view import CellView
from orchard_core.evals.html.words import NONE
from orchard_core.rollout.config import RunConfig, flat


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One fact of every cell."""

    name: str
    """Such as `seed`."""
    values: tuple[str, ...]
    """By cell."""

    @property
    def shared(self) -> bool:
        """It is the same everywhere."""
        return len(set(self.values)) == 1


def facts(cells: Sequence[CellView]) -> tuple[Fact, ...]:
    """Every fact that some cell has."""
    listed = [_of(view.cell.report.config) | _found(view) for view in cells]
    names = dict.fromkeys(name for each in listed for name in each)
    return tuple(
        Fact(name=name, values=tuple(each.get(name, "0" if name in _COUNTED else NONE) for each in listed))
        for name in names
    )


def _of(config: RunConfig) -> dict[str, str]:
    limits = config.limits.model_dump(exclude_none=True)
    return {
        "harness version": config.harness_version,
        "sandbox": config.sandbox,
        "limits": ", ".join(f"{name} {value}" for name, value in limits.items()) or "none",
        "attempts": str(config.attempts),
        "seed": str(config.seed),
        "tasks": f"{config.tasks}, hash {config.tasks_digest}",
        "prompts hash": config.prompts_digest,
        "configuration hash": config.digest,
        "begun": _moment(config.created_at),
        **_options(config),
        **{f"version of {name}": version for name, version in config.versions.items()},
    }


def _options(config: RunConfig) -> dict[str, str]:
    """What was set; of the recipe only the parts' options, for the configuration itself has the rest."""
    every = {name.removeprefix("recipe."): value for name, value in flat(config.options).items()}
    kept = {name: value for name, value in every.items() if name in config.options or "_options." in name}
    return {name: f"{value}" for name, value in kept.items() if value not in (None, "", [], {})}


def _found(view: CellView) -> dict[str, str]:
    numbers = dict(zip(_COUNTED, _counted(view), strict=True))
    return {"run": view.cell.run, **{name: str(number) for name, number in numbers.items() if number}}


_COUNTED = (
    "different first requests",
    "ran out of time",
    "started more than once",
    "judged in the agent's own sandbox",
    "run on the host's files instead of their image",
    "left out or ignored by the task set",
    "tasks given up by the sampler",
)
"""Facts that are counts; where they are 0 in every cell they are not named."""


def _counted(view: CellView) -> tuple[int, ...]:
    report = view.cell.report
    return (
        report.prompt_digests,
        report.timed_out,
        report.retried,
        report.same_sandbox,
        report.image_fallback,
        len(report.config.problems),
        len(report.dropped),
    )


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC") if at else NONE
