"""`orchard plugins`: everything that can be plugged in here, and what is broken and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orchard_core.cli.exits import Exit

if TYPE_CHECKING:
    from pydantic import JsonValue

    from orchard_core.plugins.catalog import Catalog


def plugins(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List what is installed, and what is broken and why.

    Exits with 1 when a plugin is broken; the rest works all the same.
    """
    from orchard_core.cli.output import print_json
    from orchard_core.plugins.manager import installed

    catalog = installed().catalog
    if as_json:
        print_json(_as_json(catalog))
    else:
        _print(catalog)
    if catalog.broken:
        raise typer.Exit(Exit.UNSOUND)


def _print(catalog: Catalog) -> None:
    from orchard_core.cli.output import out, print_table
    from orchard_core.evals.clean import clean_line
    from orchard_core.types.plugin import PluginKind

    rows = [
        (
            each.value,
            offer.descriptor.name,
            f":{offer.descriptor.argument}" if offer.descriptor.argument else "",
            clean_line(offer.descriptor.summary),
            f"{offer.source.distribution} {offer.source.version}",
        )
        for each in PluginKind
        for offer in catalog.of_kind(each)
    ]
    print_table(("KIND", "NAME", "ARGUMENT", "SUMMARY", "FROM"), rows)
    for broken in catalog.broken:
        source = broken.source
        title = f"{source.plugin} ({source.distribution} {source.version})"
        out(f"\nBROKEN {clean_line(title)}: {broken.fault}", fg="red", bold=True)
        out(f"  {clean_line(broken.error.message, 1000)}")
        out(f"  mend: {clean_line(broken.error.hint, 1000)}")
    for skipped in catalog.skipped:
        out(f"left out by ORCHARD_PLUGINS: {skipped.plugin} ({skipped.distribution} {skipped.version})")


def _as_json(catalog: Catalog) -> JsonValue:
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
