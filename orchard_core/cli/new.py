"""`orchard new`: begin a plugin from a template that installs, runs and passes its contract suite."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class NewKind(StrEnum):
    """What can be begun."""

    HARNESS = "harness"
    SANDBOX = "sandbox"
    REWARD = "reward"
    TRAINER = "trainer"
    TASKSET = "taskset"


def new(
    kind: Annotated[
        NewKind,
        typer.Argument(
            metavar="KIND",
            help="What to begin: harness, sandbox, reward, trainer or taskset.",
            show_default=False,
        ),
    ],
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Its name, such as my-loop.", show_default=False)
    ],
    into: Annotated[Path, typer.Option(help="Directory to make it in.")] = Path(),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Begin a plugin from a template that installs and runs at once.

    It is a distribution that passes its contract suite. What is yours to change is one file of about 40
    lines.
    """
    from orchard_core.cli.output import out, print_json
    from orchard_core.cli.scaffold.blueprint import BLUEPRINTS, PluginName
    from orchard_core.cli.scaffold.write import write_plugin

    blueprint, spelled = BLUEPRINTS[kind.value], PluginName.of(kind.value, name)
    written = write_plugin(blueprint, spelled, into)
    home = into / spelled.distribution
    edit = home / spelled.package / f"{blueprint.module}.py"
    then = [
        f"pip install -e '{home}[test]'",
        f"orchard check {kind.value}:{name}",
        blueprint.try_it.replace("NAME", name),
    ]
    if as_json:
        print_json(
            {
                "directory": str(home),
                "files": [str(path) for path in written],
                "edit": str(edit),
                "then": list(then),
            }
        )
        return
    out(f"made {home}", bold=True)
    for path in written:
        out(f"  {path.relative_to(home)}{'   <- yours to change' if path == edit else ''}")
    out("\nnext:")
    for line in then:
        out(f"  {line}")
