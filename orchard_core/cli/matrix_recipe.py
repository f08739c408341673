"""What a matrix is made of, as a YAML file or as flags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from orchard_core.cli.recipe import without_secrets
from orchard_core.rollout.matrix.caps import MatrixCaps
from orchard_core.rollout.matrix.plan import MatrixPart, MatrixPlan, MatrixShared
from orchard_core.rollout.matrix.run import MatrixOptions
from orchard_core.rollout.retry import RetryPolicy
from orchard_core.rollout.settings import RolloutSettings
from orchard_core.types.base import Record
from orchard_core.types.harness import Limits


def _part(value: Any) -> Any:
    """A name alone is written without braces."""
    return {"name": value} if isinstance(value, str) else value


def _safe(part: MatrixPart) -> MatrixPart:
    without_secrets(part.options)
    return part


Named = Annotated[MatrixPart, BeforeValidator(_part), AfterValidator(_safe)]
Bound = Annotated[int, Field(ge=1)]


class MatrixRecipe(Record):
    """One matrix. A part is a name, or a mapping of `name`, `label` and `options`."""

    harnesses: tuple[Named, ...] = ()
    """Harnesses."""
    models: tuple[Named, ...] = ()
    """Models."""
    tasksets: tuple[Named, ...] = ()
    """Task sets."""
    sandbox: Named = MatrixPart(name="local")
    """Sandbox provider."""
    tasks: tuple[str, ...] = ()
    """Globs of task ids; empty: all."""
    limit: int | None = Field(default=None, ge=1)
    """At most so many tasks of each task set, the first ones."""
    attempts: int = Field(default=1, ge=1)
    """Attempts at each task."""
    seed: int = 0
    """Seed all other seeds are derived from."""
    limits: Limits = Limits()
    """Bounds of each rollout."""
    allow_host_fallback: bool = False
    """A task that names an image the provider does not take may run on the host's files; recorded."""
    concurrency: int = Field(default=8, ge=1)
    """Rollouts at once, over all cells."""
    model_concurrency: Mapping[str, Bound] = Field(default_factory=dict)
    """Rollouts at once by model."""
    harness_concurrency: Mapping[str, Bound] = Field(default_factory=dict)
    """Rollouts at once by harness."""
    max_cost_total: float | None = Field(default=None, ge=0)
    """US dollars over the whole matrix, of calls whose price is known."""
    max_tokens_total: int | None = Field(default=None, ge=1)
    """Tokens over the whole matrix."""
    max_time: float | None = Field(default=None, ge=0)
    """Seconds of this start."""
    retry: RetryPolicy = RetryPolicy()
    """What is started again, and how often."""
    settings: RolloutSettings = RolloutSettings()
    """Deadlines of the phases."""
    strict: bool = False
    """Start nothing when a cell cannot be run."""
    out: str | None = None
    """The matrix directory; none: a new one under `matrices/`."""

    def shared(self) -> MatrixShared:
        """What all rollouts have in common."""
        settings = self.settings.model_copy(update={"allow_host_fallback": self.allow_host_fallback})
        return MatrixShared(
            sandbox=self.sandbox,
            tasks=self.tasks,
            limit=self.limit,
            attempts=self.attempts,
            seed=self.seed,
            limits=self.limits,
            settings=settings,
        )

    def options(self) -> MatrixOptions:
        """How it is run."""
        return MatrixOptions(
            concurrency=self.concurrency,
            model_concurrency=self.model_concurrency,
            harness_concurrency=self.harness_concurrency,
            caps=MatrixCaps(cost_usd=self.max_cost_total, tokens=self.max_tokens_total, time_s=self.max_time),
            retry=self.retry,
            strict=self.strict,
        )


def stored_fields(plan: MatrixPlan) -> dict[str, Any]:
    """What all cells of a stored matrix share, as recipe fields."""
    fields = plan.shared.model_dump(mode="json")
    return fields | {"allow_host_fallback": plan.shared.settings.allow_host_fallback}


def stored_parts(plan: MatrixPlan) -> dict[str, list[dict[str, Any]]]:
    """Its harnesses, models and task sets, each once."""
    found: dict[str, dict[str, MatrixPart]] = {"harnesses": {}, "models": {}, "tasksets": {}}
    for cell in plan.cells:
        for name, part in (
            ("harnesses", cell.harness),
            ("models", cell.model),
            ("tasksets", cell.taskset),
        ):
            found[name].setdefault(part.text, part)
    return {name: [part.model_dump(mode="json") for part in parts.values()] for name, parts in found.items()}
