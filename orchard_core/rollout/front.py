"""The front door: run a task set, durable and resumable, from names or objects."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue

from orchard_core.errors import ConfigError
from orchard_core.gateway.contract import Model
from orchard_core.harness.contract import Harness
from orchard_core.rollout.events import Observer
from orchard_core.rollout.opening import open_parts
from orchard_core.rollout.retry import RetryPolicy
from orchard_core.rollout.sampler import FixedSampler, GroupSampler
from orchard_core.rollout.session import ModelGateway
from orchard_core.rollout.settings import RolloutSettings
from orchard_core.rollout.starting import RunRequest, started
from orchard_core.rollout.stop import Stop
from orchard_core.sandbox.contract import SandboxProvider
from orchard_core.tasks.contract import TaskSet
from orchard_core.types.harness import Limits
from orchard_core.types.rollout import Rollout
from orchard_core.types.task import Task


async def run_rollouts(  # noqa: PLR0913 - one keyword for each thing a user may choose
    taskset: TaskSet | str,
    *,
    harness: Harness | str,
    model: Model | str,
    sandbox: SandboxProvider | str = "local",
    out: str | Path,
    resume: bool = False,
    attempts: int = 1,
    concurrency: int = 8,
    limits: Limits | None = None,
    seed: int = 0,
    select: Callable[[Task], bool] = lambda _task: True,
    settings: RolloutSettings | None = None,
    retry: RetryPolicy | None = None,
    sampler: GroupSampler | None = None,
    judge: Model | str | None = None,
    gateway: ModelGateway | None = None,
    observers: Sequence[tuple[str, Observer]] = (),
    stop: Stop | None = None,
    options: Mapping[str, JsonValue] | None = None,
) -> AsyncGenerator[Rollout, None]:
    """Run `attempts` rollouts of every selected task and give each one once it is durable under `out`.

    With `resume`, exactly what is missing there is run. Names are looked up among the plugins; what was
    loaded by name is closed at the end. `sampler` replaces the fixed number of attempts. `options` is
    stored with the configuration and read by nobody. Leaving the loop early cancels what runs.

    Raises ConfigError, PluginError, TaskError, SandboxUnsupported before anything starts; RunExists,
    RunLocked; StoreError when the disk fails; RunFutile when rollouts fail alike (`retry.alike`).
    """
    if attempts < 1 or concurrency < 1:
        raise ConfigError("attempts and concurrency are at least 1", hint="give 1 or more of each")
    request = RunRequest(
        out=Path(out), resume=resume, attempts=attempts, concurrency=concurrency, seed=seed, select=select,
        retry=retry or RetryPolicy(), sampler=sampler or FixedSampler(size=attempts), observers=observers,
        stop=stop or Stop(), options=options or {},
    )  # fmt: skip
    async with AsyncExitStack() as stack:
        parts = await open_parts(
            stack, taskset, harness=harness, model=model, sandbox=sandbox, judge=judge, gateway=gateway
        )
        parts = replace(parts, limits=limits or Limits(), settings=settings or RolloutSettings())
        async for rollout in await started(stack, parts, request):
            yield rollout
