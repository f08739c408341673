"""Typed look-ups: what the user wrote in, the contract's object out.

Each takes `NAME` or `NAME:ARGUMENT` and the plugin's options. All raise UnknownPlugin, PluginNotInstalled,
PluginImportFailed, PluginApiMismatch, DuplicatePlugin and ConfigError.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from inspect import get_annotations
from typing import Any, TypeVar

from pydantic import ValidationError

from orchard_core.errors import (
    ConfigError,
    DuplicatePlugin,
    PluginApiMismatch,
    PluginError,
    PluginImportFailed,
    PluginNotInstalled,
)
from orchard_core.formats.contract import DatasetFormat
from orchard_core.gateway.contract import Model
from orchard_core.harness.contract import Harness
from orchard_core.plugins.catalog import Catalog
from orchard_core.plugins.factory import find, make
from orchard_core.plugins.invalid import wrong
from orchard_core.plugins.manager import installed
from orchard_core.reward.contract import Reward
from orchard_core.sandbox.contract import Sandbox, SandboxProvider
from orchard_core.tasks.contract import TaskSet
from orchard_core.trainer.contract import Trainer
from orchard_core.types.plugin import Descriptor, PluginKind
from orchard_core.types.sandbox import SandboxSpec

T = TypeVar("T")


def catalog() -> Catalog:
    """Everything installed, good and broken."""
    return installed().catalog


def descriptors(kind: PluginKind) -> list[Descriptor]:
    """The usable descriptors of one kind by name."""
    return [offer.descriptor for offer in catalog().of_kind(kind)]


def check_named(kind: PluginKind, spec: str) -> None:
    """Raises UnknownPlugin for a name that no plugin has, installed or known; nothing is loaded."""
    with suppress(PluginNotInstalled, PluginImportFailed, PluginApiMismatch, DuplicatePlugin):
        find(catalog(), kind, spec.partition(":")[0])


def load_provider(spec: str, **options: object) -> SandboxProvider:
    """A sandbox provider, such as `local`."""
    return load_as(PluginKind.SANDBOX, SandboxProvider, spec, options)


def load_harness(spec: str, **options: object) -> Harness:
    """A harness, such as `react`."""
    return load_as(PluginKind.HARNESS, Harness, spec, options)


def load_taskset(spec: str, **options: object) -> TaskSet:
    """A task set, such as `workbench:16` or `harbor:PATH`."""
    return load_as(PluginKind.TASKSET, TaskSet, spec, options)


def load_model(spec: str, **options: object) -> Model:
    """A model, such as `oracle` or `openai:NAME`."""
    return load_as(PluginKind.MODEL, Model, spec, options)


def load_reward(spec: str, **options: object) -> Reward:
    """A reward by name."""
    return load_as(PluginKind.REWARD, Reward, spec, options)


def load_trainer(spec: str, **options: object) -> Trainer:
    """A trainer by name."""
    return load_as(PluginKind.TRAINER, Trainer, spec, options)


def load_format(spec: str, **options: object) -> DatasetFormat:
    """A dataset format, such as `hf` or `atif`."""
    return load_as(PluginKind.FORMAT, DatasetFormat, spec, options)


@asynccontextmanager
async def open_sandbox(provider: str | SandboxProvider = "local", **spec: Any) -> AsyncIterator[Sandbox]:
    """A sandbox of the named provider; keywords are SandboxSpec fields. Closed on exit.

    Raises what `SandboxProvider.create` raises.
    """
    owned = load_provider(provider) if isinstance(provider, str) else None
    maker = owned or provider
    assert not isinstance(maker, str)
    try:
        async with await maker.create(_spec(spec)) as sandbox:
            yield sandbox
    finally:
        if owned is not None:
            await owned.close()


def _spec(fields: dict[str, Any]) -> SandboxSpec:
    try:
        return SandboxSpec(**fields)
    except ValidationError as cause:
        raise ConfigError(
            wrong(cause, SandboxSpec, noun="option", of=" of a sandbox"),
            hint=f"it takes: {', '.join(SandboxSpec.model_fields)}",
        ) from cause


def load_as(kind: PluginKind, contract: type[T], spec: str, options: Mapping[str, object]) -> T:
    """Any plugin, of a kind whose contract lies above this layer."""
    name, colon, argument = spec.partition(":")
    offer = find(catalog(), kind, name)
    made = make(offer, argument if colon else None, options)
    if not isinstance(made, contract):
        raise PluginError(
            f"{kind} {name!r} of {offer.source.distribution} gave a {type(made).__name__}, which lacks "
            f"{_missing(contract, made)} of the {contract.__name__} contract",
            hint=f"report it to the authors of {offer.source.distribution}",
        )
    return made


def _missing(contract: type, made: object) -> str:
    declared = {name for base in contract.__mro__ for name in (*vars(base), *get_annotations(base))}
    return (
        ", ".join(sorted(name for name in declared if name[0] != "_" and not hasattr(made, name))) or "parts"
    )
