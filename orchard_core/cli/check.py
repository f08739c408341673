"""`orchard check`: hold an installed plugin to its contract, and say in words what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orchard_core.cli.exits import Exit

if TYPE_CHECKING:
    from pydantic import JsonValue

    from orchard_core.cli.checking import Checked
    from orchard_core.plugins.catalog import Catalog
    from orchard_core.types.check import Finding, Subject
    from orchard_core.types.plugin import PluginKind


def check(
    subjects: Annotated[
        list[str],
        typer.Argument(
            metavar="PLUGIN",
            help="KIND:NAME such as harness:react or harness:cli:pi, a name alone, or a distribution.",
            show_default=False,
        ),
    ],
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="NAME=VALUE", help="An option of the plugin's own. Repeatable."),
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
    from orchard_core.cli.checking import need_pytest
    from orchard_core.cli.options import key_values
    from orchard_core.cli.output import print_json
    from orchard_core.plugins.lookup import catalog
    from orchard_core.types.check import Subject

    need_pytest()
    options = key_values(option or [], "--option")
    asked = [
        Subject(kind=kind, spec=spec, options=options, sandbox=sandbox, policy=policy, only=only)
        for subject in subjects
        for kind, spec in _named(catalog(), subject)
    ]
    results = [_check(subject, quiet_s=quiet, shown=not as_json) for subject in asked]
    if as_json:
        print_json([_as_json(checked) for checked in results])
    if any(checked.failed for checked in results):
        raise typer.Exit(Exit.UNSOUND)


def _check(subject: Subject, *, quiet_s: float, shown: bool) -> Checked:
    """Run its suite; `shown`: print each finding as it comes, and the failures at the end."""
    from orchard_core.cli.checking import Checked, follow
    from orchard_core.cli.output import out

    checked = Checked(subject=subject)
    if shown:
        out(checked.name, bold=True)
    for finding in follow(subject, quiet_s=quiet_s):
        checked.take(finding)
        if shown:
            _show(finding)
    if shown:
        _explain(checked)
    return checked


def _named(catalog: Catalog, subject: str) -> list[tuple[PluginKind, str]]:
    """Kind and written form of all that the user's word may mean. Raises UnknownPlugin and the error of
    a broken plugin."""
    from orchard_core.errors import UnknownPlugin
    from orchard_core.plugins.factory import find
    from orchard_core.types.plugin import PluginKind

    head, _, rest = subject.partition(":")
    if head in set(PluginKind) and rest:
        find(catalog, PluginKind(head), rest.partition(":")[0])
        return [(PluginKind(head), rest)]
    for broken in catalog.broken:
        if subject == broken.source.distribution:
            raise broken.error
    found = [
        (offer.kind, subject if offer.descriptor.name == head else offer.descriptor.name)
        for offer in catalog.offers.values()
        if subject == offer.source.distribution or offer.descriptor.name == head
    ]
    if not found:
        hint = "orchard plugins; a name is written KIND:NAME, such as harness:react"
        raise UnknownPlugin(f"no plugin or distribution is named {subject!r}", hint=hint)
    return found


def _show(finding: Finding) -> None:
    from orchard_core.cli.output import out

    marks = {"passed": ("ok  ", "green"), "failed": ("FAIL", "red"), "skipped": ("-   ", "bright_black")}
    if finding.state in marks:
        mark, colour = marks[finding.state]
        out(f"  {mark} {_title(finding.test)}", fg=colour)


def _title(test: str) -> str:
    from orchard_core.evals.clean import clean_line
    from orchard_core.types.check import title

    _, bracket, parameters = test.partition("[")
    return clean_line(title(test) + (f" ({parameters.removesuffix(']')})" if bracket else ""))


def _explain(checked: Checked) -> None:
    from orchard_core.cli.output import out
    from orchard_core.evals.clean import clean_line

    seen = {finding.seen for finding in checked.failed}
    if len(seen) == 1 and len(checked.failed) > 1:  # it could not even start: no rule is to blame
        out(f"\nFAIL all {len(checked.failed)} alike", fg="red", bold=True)
        out(f"  seen: {clean_line(seen.pop(), 400)}")
    else:
        for finding in checked.failed:
            _explain_one(finding)
    for reason in sorted({finding.seen for finding in checked.skipped}):
        count = sum(finding.seen == reason for finding in checked.skipped)
        out(f"  {count} skipped: {clean_line(reason, 200)}", dim=True)
    out(f"{checked.name}: {checked.passed} hold, {len(checked.failed)} fail", bold=True)


def _explain_one(finding: Finding) -> None:
    from orchard_core.cli.output import out
    from orchard_core.evals.clean import clean_line

    out(f"\nFAIL {_title(finding.test)}", fg="red", bold=True)
    for word, text in (("rule", finding.rule), ("seen", finding.seen), ("more", finding.link)):
        if text:
            out(f"  {word}: {clean_line(text, 400)}")


def _as_json(checked: Checked) -> JsonValue:
    return {
        "subject": checked.name,
        "passed": checked.passed,
        "failed": [finding.model_dump(mode="json") for finding in checked.failed],
        "skipped": [finding.model_dump(mode="json") for finding in checked.skipped],
    }
