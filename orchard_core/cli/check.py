"""`orchard check`: hold an installed plugin to its contract, and say in words what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orchard_core.cli.exits import Exit

if TYPE_CHECKING:
    from pydantic import JsonValue

    from orchard_core.cli.checking import Checked, Found
    from orchard_core.plugins.catalog import Catalog


def check(
    subjects: Annotated[
        list[str],
        typer.Argument(
            metavar="PLUGIN...",
            help="KIND:NAME such as harness:react or harness:cli:pi, a name alone, or a distribution.",
            show_default=False,
        ),
    ],
    option: Annotated[
        list[str] | None, typer.Option("--option", help="name=value, an option of the plugin's own.")
    ] = None,
    sandbox: Annotated[
        str, typer.Option(help="Provider of the sandboxes it is tried in; fake: plain subprocesses.")
    ] = "local",
    policy: Annotated[str, typer.Option(help="For trainers: the model to start from.")] = "fake-policy",
    only: Annotated[str, typer.Option(help="Only rules whose name holds this text.")] = "",
    quiet: Annotated[
        float, typer.Option(min=1, help="Seconds a test may take before it counts as hanging.")
    ] = 300.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Hold installed plugins to their contracts; explain each failure.

    It runs the contract suite of each one's kind, and exits with 1 when a rule does not hold. The suites need
    pytest: pip install 'orchard-core[check]'.
    """
    from orchard_core.cli.checking import Checked, follow, need_pytest
    from orchard_core.cli.options import key_values
    from orchard_core.cli.output import print_json
    from orchard_core.plugins.lookup import catalog

    need_pytest()
    options = key_values(option or [], "--option")
    results = []
    for kind, spec in [named for subject in subjects for named in _named(catalog(), subject)]:
        checked = Checked(f"{kind}:{spec}")
        asked: dict[str, object] = {
            "kind": kind, "spec": spec, "options": options, "sandbox": sandbox, "policy": policy, "only": only
        }  # fmt: skip
        if not as_json:
            _begin(checked)
        for found in follow(asked, quiet_s=quiet):
            checked.take(found)
            if not as_json:
                _show(found)
        results.append(checked)
        if not as_json:
            _explain(checked)
    if as_json:
        print_json([_as_json(checked) for checked in results])
    if any(checked.failed for checked in results):
        raise typer.Exit(Exit.UNSOUND)


def _named(catalog: Catalog, subject: str) -> list[tuple[str, str]]:
    """Kind and written form of all that the user's word may mean. Raises UnknownPlugin and the error of
    a broken plugin."""
    from orchard_core.errors import UnknownPlugin
    from orchard_core.plugins.factory import find
    from orchard_core.types.plugin import PluginKind

    head, _, rest = subject.partition(":")
    if head in set(PluginKind) and rest:
        find(catalog, PluginKind(head), rest.partition(":")[0])
        return [(head, rest)]
    for broken in catalog.broken:
        if subject == broken.source.distribution:
            raise broken.error
    found = [
        (offer.kind.value, subject if offer.descriptor.name == head else offer.descriptor.name)
        for offer in catalog.offers.values()
        if subject == offer.source.distribution or offer.descriptor.name == head
    ]
    if not found:
        raise UnknownPlugin(f"no plugin or distribution is named {subject!r}", hint="orchard plugins")
    return found


def _begin(checked: Checked) -> None:
    from orchard_core.cli.output import out

    out(f"{checked.subject}", bold=True)


def _show(found: Found) -> None:
    from orchard_core.cli.output import out

    marks = {"passed": ("ok  ", "green"), "failed": ("FAIL", "red"), "skipped": ("-   ", "bright_black")}
    if found.state in marks:
        mark, colour = marks[found.state]
        out(f"  {mark} {_title(found.test)}", fg=colour)


def _title(test: str) -> str:
    from orchard_core.evals.clean import clean_line

    name, bracket, parameters = test.removeprefix("test_").partition("[")
    return clean_line(name.replace("_", " ") + (f" ({parameters.removesuffix(']')})" if bracket else ""))


def _explain(checked: Checked) -> None:
    from orchard_core.cli.output import out
    from orchard_core.evals.clean import clean_line

    for found in checked.failed:
        out(f"\nFAIL {_title(found.test)}", fg="red", bold=True)
        for word, text in (("rule", found.rule), ("seen", found.seen), ("more", found.link)):
            if text:
                out(f"  {word}: {clean_line(text, 400)}")
    for reason in sorted({found.seen for found in checked.skipped}):
        count = sum(found.seen == reason for found in checked.skipped)
        out(f"  {count} skipped: {clean_line(reason, 200)}", dim=True)
    out(f"{checked.subject}: {checked.passed} hold, {len(checked.failed)} fail", bold=True)


def _as_json(checked: Checked) -> JsonValue:
    from dataclasses import asdict

    return {
        "subject": checked.subject,
        "passed": checked.passed,
        "failed": [asdict(found) for found in checked.failed],
        "skipped": [asdict(found) for found in checked.skipped],
    }
