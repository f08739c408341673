"""Loads plugins, each on its own, and rolls back the ones that fail.

This is the one module that touches pluggy's untyped hooks. Environment:

    ORCHARD_PLUGINS         comma-separated entry-point names; only these are loaded (built-ins always are)
    ORCHARD_PLUGINS_STRICT  1: a broken plugin is fatal instead of listed
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stdout
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

import pluggy

from orchard_core.errors import (
    DuplicatePlugin,
    OrchardError,
    PluginApiMismatch,
    PluginError,
    PluginImportFailed,
)
from orchard_core.plugins import builtin, hookspecs
from orchard_core.plugins.catalog import Broken, Catalog, Fault, Offer, Source
from orchard_core.types.plugin import API_VERSION, Descriptor, PluginKind

if TYPE_CHECKING:
    import typer

    from orchard_core.types.events import Event

GROUP = "orchard.plugins"
"""Entry-point group that plugins register in."""

_KIND_OF_HOOK = {
    "orchard_sandbox_providers": PluginKind.SANDBOX,
    "orchard_harnesses": PluginKind.HARNESS,
    "orchard_tasksets": PluginKind.TASKSET,
    "orchard_rewards": PluginKind.REWARD,
    "orchard_trainers": PluginKind.TRAINER,
    "orchard_models": PluginKind.MODEL,
    "orchard_dataset_formats": PluginKind.FORMAT,
    "orchard_workforces": PluginKind.WORKFORCE,
}
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")


class Plugins:
    """One load of everything installed. Use `installed()` unless a test wants its own."""

    def __init__(self, found: Iterable[EntryPoint], environ: Mapping[str, str]) -> None:
        self._pluggy = pluggy.PluginManager("orchard")
        self._pluggy.add_hookspecs(hookspecs)
        self._offers: dict[tuple[PluginKind, str], Offer] = {}
        self._broken: list[Broken] = []
        self._skipped: list[Source] = []
        self._sources: dict[int, Source] = {}
        self._strict = environ.get("ORCHARD_PLUGINS_STRICT", "") not in {"", "0"}
        self._add_builtins()
        only = _names(environ.get("ORCHARD_PLUGINS"))
        for entry in sorted(found, key=lambda entry: (entry.name, entry.value)):
            source = _source(entry)
            if only is not None and entry.name not in only:
                self._skipped.append(source)
            else:
                self._add(entry, source)

    @property
    def catalog(self) -> Catalog:
        """What was found."""
        return Catalog(offers=dict(self._offers), broken=tuple(self._broken), skipped=tuple(self._skipped))

    def add_commands(self, app: typer.Typer) -> list[Broken]:
        """Let plugins add commands; gives those that failed to."""
        failed = []
        for source, function in self._implementations("orchard_commands"):
            try:
                function(app)
            except Exception as cause:  # noqa: BLE001 - border: a plugin must not take the CLI down
                failed.append(_broken(source, Fault.REGISTRATION, _register_failed(source, cause)))
        return failed

    def observers(self) -> list[tuple[str, Callable[[Event], None]]]:
        """Every `orchard_on_event` implementation, with its plugin's name."""
        return [(source.plugin, function) for source, function in self._implementations("orchard_on_event")]

    def _implementations(self, hook: str) -> list[tuple[Source, Callable[..., None]]]:
        caller = getattr(self._pluggy.hook, hook)
        return [(self._sources[id(impl.plugin)], impl.function) for impl in caller.get_hookimpls()]

    def _add_builtins(self) -> None:
        from orchard_core import __version__

        source = Source(
            plugin="builtin", module=builtin.__name__, distribution="orchard-core", version=__version__
        )
        self._register(builtin, source)

    def _add(self, entry: EntryPoint, source: Source) -> None:
        try:
            with redirect_stdout(sys.stderr):  # what a plugin prints must not mix with a command's output
                plugin = entry.load()
        except (Exception, SystemExit) as cause:  # noqa: BLE001 - border: foreign code may raise anything
            self._reject(_broken(source, Fault.IMPORT, _import_failed(source, cause)))
            return
        self._register(plugin, source)

    def _register(self, plugin: object, source: Source) -> None:
        learnt: dict[tuple[PluginKind, str], Offer] = {}
        self._sources[id(plugin)] = source
        try:
            self._pluggy.register(plugin, name=f"{source.distribution}:{source.plugin}")
            self._collect(plugin, source, learnt)
        except (Exception, SystemExit) as cause:  # noqa: BLE001 - border: registration hooks are foreign
            if self._pluggy.is_registered(plugin):
                self._pluggy.unregister(plugin)
            fault, error = _explain(source, cause)
            self._reject(_broken(source, fault, error, claims=frozenset(learnt)))
            return
        self._offers |= learnt

    def _collect(self, plugin: object, source: Source, learnt: dict[tuple[PluginKind, str], Offer]) -> None:
        for hook, kind in _KIND_OF_HOOK.items():
            for impl in getattr(self._pluggy.hook, hook).get_hookimpls():
                if impl.plugin is not plugin:
                    continue
                for descriptor in impl.function() or ():
                    offer = _checked(kind, descriptor, source)
                    key = (kind, offer.descriptor.name)
                    if key in learnt or key in self._offers:
                        raise _duplicate(offer, self._offers.get(key))
                    learnt[key] = offer

    def _reject(self, broken: Broken) -> None:
        if self._strict or broken.source.plugin == "builtin":
            raise broken.error
        self._broken.append(broken)


@cache
def installed() -> Plugins:
    """Everything installed in this interpreter, loaded once."""
    return Plugins(entry_points(group=GROUP), os.environ)


def _names(text: str | None) -> frozenset[str] | None:
    if text is None:
        return None
    return frozenset(name.strip() for name in text.split(",") if name.strip())


def _source(entry: EntryPoint) -> Source:
    dist = entry.dist
    return Source(
        plugin=entry.name,
        module=entry.value,
        distribution=dist.name if dist else "unknown",
        version=dist.version if dist else "unknown",
    )


def _checked(kind: PluginKind, descriptor: object, source: Source) -> Offer:
    if not isinstance(descriptor, Descriptor):
        raise TypeError(f"a {kind} hook returned {type(descriptor).__name__} instead of a Descriptor")
    if descriptor.api_version != API_VERSION:
        raise PluginApiMismatch(
            f"{kind} {descriptor.name!r} of {source.distribution} {source.version} was written for "
            f"plugin API {descriptor.api_version}; this orchard-core speaks {API_VERSION}",
            hint=_api_hint(descriptor.api_version, source),
        )
    if not _NAME.fullmatch(descriptor.name):
        raise ValueError(f"{kind} name {descriptor.name!r} is not of the form [a-z0-9][a-z0-9-]*")
    return Offer(kind=kind, descriptor=descriptor, source=source)


def _api_hint(version: int, source: Source) -> str:
    if version > API_VERSION:
        return "pip install --upgrade orchard-core"
    return f"pip install --upgrade {source.distribution}"


def _duplicate(offer: Offer, other: Offer | None) -> DuplicatePlugin:
    first = other.source if other else offer.source
    mend = f"pip uninstall {offer.source.distribution}"
    if first.distribution == offer.source.distribution:
        mend = f"rename one of them in {offer.source.distribution}"
    return DuplicatePlugin(
        f"{offer.kind} {offer.descriptor.name!r} is offered by {first.distribution} and by "
        f"{offer.source.distribution}; the first one is used",
        hint=f"{mend}, or list the wanted plugins in ORCHARD_PLUGINS",
    )


def _import_failed(source: Source, cause: BaseException) -> PluginImportFailed:
    error = PluginImportFailed(
        f"plugin {source.plugin!r} of {source.distribution} {source.version} failed to import "
        f"{source.module}: {type(cause).__name__}: {cause}",
        hint=f"pip install --force-reinstall {source.distribution}, or pip uninstall {source.distribution}",
    )
    error.__cause__ = cause
    return error


def _register_failed(source: Source, cause: BaseException) -> PluginError:
    error = PluginError(
        f"plugin {source.plugin!r} of {source.distribution} {source.version} failed to register: "
        f"{type(cause).__name__}: {cause}",
        hint=f"report it to the authors of {source.distribution}, or pip uninstall {source.distribution}",
    )
    error.__cause__ = cause
    return error


def _explain(source: Source, cause: BaseException) -> tuple[Fault, OrchardError]:
    match cause:
        case PluginApiMismatch():
            return Fault.API, cause
        case DuplicatePlugin():
            return Fault.DUPLICATE, cause
        case _:
            return Fault.REGISTRATION, _register_failed(source, cause)


def _broken(
    source: Source,
    fault: Fault,
    error: OrchardError,
    claims: frozenset[tuple[PluginKind, str]] = frozenset(),
) -> Broken:
    return Broken(source=source, fault=fault, error=error, claims=claims)
