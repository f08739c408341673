"""From a written form such as `workbench:16` to the thing itself: heavy imports happen here, not before."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from orchard_core.errors import (
    ConfigError,
    PluginError,
    PluginImportFailed,
    PluginNotInstalled,
    UnknownPlugin,
)
from orchard_core.plugins.catalog import Catalog, Offer
from orchard_core.plugins.invalid import wrong
from orchard_core.plugins.known import KNOWN
from orchard_core.types.plugin import PluginKind


def find(catalog: Catalog, kind: PluginKind, name: str) -> Offer:
    """The offer of this name.

    Raises the broken plugin's own error when it claims the name, PluginNotInstalled when a known
    distribution would bring it, UnknownPlugin otherwise.
    """
    offer = catalog.offers.get((kind, name))
    if offer is not None:
        return offer
    for broken in catalog.broken:
        if (kind, name) in broken.claims or _brings(broken.source.distribution, kind, name):
            raise broken.error
    if (kind, name) in KNOWN:
        raise PluginNotInstalled(
            f"{kind} {name!r} is not installed", hint=f"pip install '{KNOWN[kind, name]}'"
        )
    raise _unknown(catalog, kind, name)


def make(offer: Offer, argument: str | None, options: Mapping[str, object]) -> Any:
    """Call the offer's factory with its validated config.

    Raises ConfigError for options that do not fit, PluginNotInstalled when a required module is
    missing, PluginImportFailed when importing the factory raises.
    """
    descriptor = offer.descriptor
    missing = [module for module in descriptor.requires if find_spec(module) is None]
    if missing:
        raise PluginNotInstalled(
            f"{offer.kind} {descriptor.name!r} needs the module {missing[0]!r}",
            hint=f"pip install '{descriptor.extra or missing[0]}'",
        )
    values = _values(offer, argument, options)
    factory = resolve(offer, descriptor.factory)
    if descriptor.config is None:
        return factory()
    return factory(_validated(offer, resolve(offer, descriptor.config), values))


def resolve(offer: Offer, target: object) -> Any:
    """Import `package.module:attribute`; anything else is given back as it is."""
    if not isinstance(target, str):
        return target
    module, _, attribute = target.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except Exception as cause:
        raise PluginImportFailed(
            f"{offer.kind} {offer.descriptor.name!r} of {offer.source.distribution} {offer.source.version} "
            f"failed to import {target}: {type(cause).__name__}: {cause}",
            hint=f"mend it if it is yours; else pip install --force-reinstall {offer.source.distribution}",
        ) from cause


def _values(offer: Offer, argument: str | None, options: Mapping[str, object]) -> dict[str, object]:
    descriptor = offer.descriptor
    written = f"{offer.kind} {descriptor.name!r}"
    if argument is not None and not descriptor.argument:
        raise ConfigError(
            f"{written} takes nothing after its name, but {argument!r} was given",
            hint=f"write {descriptor.name} alone",
        )
    if options and descriptor.config is None:
        raise ConfigError(f"{written} takes no options, but {', '.join(sorted(options))} was given")
    values = dict(options)
    if argument is not None:
        values.setdefault(descriptor.argument, argument)
    return values


def _validated(offer: Offer, config: Any, values: Mapping[str, object]) -> object:
    from pydantic import ValidationError

    try:
        return config(**values)
    except ValidationError as cause:
        argument = offer.descriptor.argument
        if (
            argument
            and argument not in values
            and any(item["loc"] == (argument,) and item["type"] == "missing" for item in cause.errors())
        ):
            raise ConfigError(
                f"{offer.kind} {offer.descriptor.name!r} needs a {argument} after its name",
                hint=f"write {offer.descriptor.name}:{argument.upper()}",
            ) from cause
        raise ConfigError(
            wrong(cause, config, noun="option", of=f" of {offer.kind} {offer.descriptor.name}"),
            hint=f"it takes: {', '.join(config.model_fields)}",
        ) from cause


def _brings(distribution: str, kind: PluginKind, name: str) -> bool:
    requirement = KNOWN.get((kind, name), "")
    return requirement.partition("[")[0] == distribution


def _unknown(catalog: Catalog, kind: PluginKind, name: str) -> PluginError:
    names = sorted(
        {offer.descriptor.name for offer in catalog.of_kind(kind)}
        | {known for known_kind, known in KNOWN if known_kind is kind}
    )
    close = get_close_matches(name, names, n=1, cutoff=0.5)
    guess = f"; did you mean {close[0]!r}?" if close else ""
    broken = f" ({len(catalog.broken)} broken, see orchard plugins)" if catalog.broken else ""
    return UnknownPlugin(
        f"there is no {kind} {name!r}{guess}",
        hint=f"known: {', '.join(names) or 'none'}{broken}; run orchard plugins for all",
    )
