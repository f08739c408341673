"""`orchard plugins`: everything that can be plugged in here, and what is broken and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orchard_core.cli.exits import Exit

if TYPE_CHECKING:
    from pydantic import JsonValue

    from orchard_core.plugins.catalog import Catalog


def plugins(
    kind: Annotated[
        str, typer.Option(help="Only this kind: sandbox, harness, taskset, reward, trainer or model.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List plugins: name, kind, distribution, version, summary; for broken ones the cause and the mend.

    Exits with 1 when a plugin is broken.
    """
    from orchard_core.cli.output import print_json
    from orchard_core.plugins.manager import installed

    _check_kind(kind)
    catalog = installed().catalog
    if as_json:
        print_json(_as_json(catalog, kind))
    else:
        _print(catalog, kind)
    if catalog.broken:
        raise typer.Exit(Exit.UNSOUND)


def _check_kind(kind: str) -> None:
    from orchard_core.types.plugin import PluginKind

    kinds = [known.value for known in PluginKind]
    if kind and kind not in kinds:
        raise typer.BadParameter(f"{kind!r} is not one of {', '.join(kinds)}", param_hint="--kind")


def _print(catalog: Catalog, kind: str) -> None:
    from orchard_core.cli.clean import clean_line
    from orchard_core.cli.output import console, table
    from orchard_core.types.plugin import PluginKind

    out = console()
    good = table("KIND", "NAME", "SUMMARY", "FROM")
    for each in PluginKind:
        for offer in catalog.of_kind(each) if kind in ("", each) else ():
            source = f"{offer.source.distribution} {offer.source.version}"
            good.add_row(each.value, _written(offer.descriptor), clean_line(offer.descriptor.summary), source)
    out.print(good)
    for broken in catalog.broken:
        source_ = broken.source
        title = f"{source_.plugin} ({source_.distribution} {source_.version})"
        out.print(f"\nBROKEN {clean_line(title)}: {broken.fault}", style="bold red")
        out.print(f"  {clean_line(broken.error.message, 1000)}")
        out.print(f"  mend: {clean_line(broken.error.hint, 1000)}")
    for skipped in catalog.skipped:
        out.print(f"left out by ORCHARD_PLUGINS: {skipped.plugin} ({skipped.distribution} {skipped.version})")


def _written(descriptor: object) -> str:
    argument = getattr(descriptor, "argument", "")
    name = str(getattr(descriptor, "name", ""))
    return f"{name}:{argument.upper()}" if argument else name


def _as_json(catalog: Catalog, kind: str) -> JsonValue:
    from orchard_core.types.plugin import PluginKind

    good: list[JsonValue] = [
        {
            "kind": each.value,
            "name": offer.descriptor.name,
            "argument": offer.descriptor.argument,
            "summary": offer.descriptor.summary,
            "plugin": offer.source.plugin,
            "distribution": offer.source.distribution,
            "version": offer.source.version,
        }
        for each in PluginKind
        if kind in ("", each)
        for offer in catalog.of_kind(each)
    ]
    broken: list[JsonValue] = [
        {
            "plugin": one.source.plugin,
            "module": one.source.module,
            "distribution": one.source.distribution,
            "version": one.source.version,
            "fault": one.fault.value,
            "cause": one.error.message,
            "mend": one.error.hint,
        }
        for one in catalog.broken
    ]
    skipped: list[JsonValue] = [
        {"plugin": one.plugin, "distribution": one.distribution, "version": one.version}
        for one in catalog.skipped
    ]
    return {"plugins": good, "broken": broken, "skipped": skipped}
