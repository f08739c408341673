"""Turning what the user named into the parts and the resolved configuration of a run."""

from __future__ import annotations

import json
import platform
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass

from pydantic import BaseModel, JsonValue
from pydantic_core import to_jsonable_python

from orchard_core import __version__
from orchard_core.errors import ConfigError, SandboxUnsupported, TaskError
from orchard_core.gateway.contract import Model
from orchard_core.harness.contract import Harness, ImageChecked, SettingsRead
from orchard_core.plugins import lookup
from orchard_core.rollout.config import RunConfig
from orchard_core.rollout.fitting import check_known_tools, check_limits, fit_spec
from orchard_core.rollout.identity import digest
from orchard_core.rollout.parts import RolloutParts, no_judge
from orchard_core.rollout.retry import RetryPolicy
from orchard_core.rollout.sampler import GroupSampler
from orchard_core.rollout.session import ModelGateway
from orchard_core.rollout.text import ERROR_LIMIT, excerpt
from orchard_core.rollout.trained import trained_on
from orchard_core.sandbox.contract import SandboxProvider
from orchard_core.tasks.contract import TaskSet
from orchard_core.types.task import Task

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


async def open_parts(
    stack: AsyncExitStack,
    taskset: TaskSet | str,
    *,
    harness: Harness | str,
    model: Model | str,
    sandbox: SandboxProvider | str,
    judge: Model | str | None = None,
    gateway: ModelGateway | None = None,
) -> RolloutParts:
    """The parts; what is loaded by name here is closed with `stack`.

    Raises PluginError and ConfigError.
    """
    taskset = lookup.load_taskset(taskset) if isinstance(taskset, str) else taskset
    harness = lookup.load_harness(harness) if isinstance(harness, str) else harness
    name = model if isinstance(model, str) else ""
    return RolloutParts(
        taskset=taskset,
        harness=harness,
        model=_model(model, stack),
        model_name=name,
        provider=_provider(sandbox, stack),
        gateway=gateway or await _gateway(stack),
        judge=_judge(judge, stack),
        versions=plugin_versions(),
    )


def _provider(sandbox: SandboxProvider | str, stack: AsyncExitStack) -> SandboxProvider:
    if not isinstance(sandbox, str):
        return sandbox
    provider = lookup.load_provider(sandbox)
    stack.push_async_callback(provider.close)
    return provider


def _model(model: Model | str, stack: AsyncExitStack) -> Model:
    if not isinstance(model, str):
        return model
    loaded = lookup.load_model(model)
    stack.push_async_callback(loaded.close)
    return loaded


def _judge(judge: Model | str | None, stack: AsyncExitStack) -> Callable[[str], Model]:
    if judge is None:
        return no_judge
    model = _model(judge, stack)
    return lambda _name: model


async def _gateway(stack: AsyncExitStack) -> ModelGateway:
    from orchard_core.gateway.server import Gateway

    return await stack.enter_async_context(Gateway())


def select_tasks(taskset: TaskSet, select: Callable[[Task], bool]) -> dict[str, Task]:
    """The chosen tasks by id, in order. Raises ConfigError when there are none, TaskError when an id comes
    twice."""
    tasks: dict[str, Task] = {}
    for task in filter(select, taskset.tasks()):
        if task.id in tasks:
            raise TaskError(f"task set {taskset.name} has two tasks with the id {task.id}")
        tasks[task.id] = task
    if not tasks:
        problems = "".join(f"; {line}" for line in list(taskset.problems())[:3])
        raise ConfigError(
            f"task set {taskset.name} has no such task to run{problems}",
            hint=f"orchard tasks list {taskset.name}",
        )
    return tasks


async def check_images(tasks: Iterable[Task], parts: RolloutParts) -> None:
    """Refuse, before anything starts, tasks whose image the provider does not take, or whose tools, where
    they are known, the harness cannot reach, an image that cannot hold its program, and a limit that it
    cannot hold.

    Raises SandboxUnsupported, naming how many there are, and ConfigError.
    """
    check_limits(parts.harness, parts.limits)
    can = await parts.provider.capabilities()
    refused: list[SandboxUnsupported] = []
    for task in tasks:
        check_known_tools(task, parts.taskset, parts.harness)
        try:
            fitted = fit_spec(task, parts.taskset.spec(task), can, parts.settings)
            if isinstance(parts.harness, ImageChecked):
                parts.harness.check_image(fitted.spec.image)
        except ConfigError:
            raise
        except SandboxUnsupported as error:
            refused.append(error)
        except Exception:  # noqa: BLE001, S112 - border: one broken task is named when its turn comes
            continue
    if refused:
        more = f" (and {len(refused) - 1} further tasks)" if len(refused) > 1 else ""
        raise SandboxUnsupported(refused[0].message + more, hint=refused[0].hint)


def resolve(
    parts: RolloutParts,
    tasks: Mapping[str, Task],
    *,
    sampler: GroupSampler,
    attempts: int,
    concurrency: int,
    seed: int,
    retry: RetryPolicy,
    options: Mapping[str, JsonValue],
) -> RunConfig:
    """Everything that decides what the run does, as it is stored."""
    return RunConfig(
        taskset=parts.taskset.name,
        harness=parts.harness.name,
        harness_version=parts.harness.version,
        harness_settings=_read_by(parts.harness),
        model=parts.model_text,
        trained=trained_on(parts.model, parts.model_text),
        sandbox=parts.provider.name,
        sampler=_describe(sampler),
        attempts=attempts,
        tasks=len(tasks),
        tasks_digest=digest(*(f"{task.id} {task.digest}" for task in tasks.values()))[:16],
        problems=tuple(excerpt(line, ERROR_LIMIT) for line in parts.taskset.problems()),
        prompts_digest=digest(*(task.instruction for task in tasks.values()))[:16],
        seed=seed,
        limits=parts.limits,
        settings=parts.settings,
        retry=retry,
        concurrency=concurrency,
        options=options,
        versions={**parts.versions, "orchard-core": __version__, "python": platform.python_version()},
        created_at=time.time(),
    )


def _read_by(harness: Harness) -> str:
    if not isinstance(harness, SettingsRead):
        return ""
    return digest(json.dumps(_plain(harness.settings_read), sort_keys=True))[:16]


def plugin_versions() -> dict[str, str]:
    """Distribution to version, of everything that plugins are loaded from."""
    sources = {offer.source.distribution: offer.source.version for offer in lookup.catalog().offers.values()}
    return dict(sorted(sources.items()))


def _describe(sampler: GroupSampler) -> JsonValue:
    return {"name": type(sampler).__name__, "settings": _sampler_settings(sampler)}


def _sampler_settings(sampler: object) -> JsonValue:
    """Its fields; of one that is neither a model nor a dataclass, what it says of itself."""
    if isinstance(sampler, BaseModel):
        fields: JsonValue = sampler.model_dump(mode="json")
        return fields
    if is_dataclass(sampler):
        # Field by field: `asdict` would copy what cannot be copied.
        return {item.name: _plain(getattr(sampler, item.name)) for item in dataclass_fields(sampler)}
    return _plain(sampler)


def _plain(value: object) -> JsonValue:
    """As JSON, or in words; an address in memory differs with each start, and so is left out."""
    try:
        plain: JsonValue = to_jsonable_python(value, fallback=lambda odd: _ADDRESS.sub("", repr(odd)))
    except ValueError:  # pydantic's serialisation error, such as for a cycle
        return _ADDRESS.sub("", repr(value))
    return plain
