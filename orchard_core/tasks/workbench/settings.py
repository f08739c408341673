"""A family about configuration: change some keys, keep all the rest byte for byte."""

from __future__ import annotations

from random import Random

from orchard_core.tasks.workbench.problem import NAMES, Check, Problem, Step


def config_edit(random: Random) -> Problem:
    """The same key stands in several sections; only one of them is to change."""
    sections = random.sample(NAMES, 3)
    target = random.choice(sections)
    ports = random.sample(range(2000, 9000), 4)
    before, after = [], []
    for section, port in zip(sections, ports, strict=False):
        name = random.choice(NAMES)
        block = [
            f"[{section}]",
            f"# the {section} service",
            f"port = {port}",
            f"name={name}",
            "debug = true",
            "",
        ]
        before += block
        if section == target:
            block = [*block[:2], f"port = {ports[3]}", block[3], "debug = false", ""]
        after += block
    return Problem(
        instruction=(
            f"In service.ini, set port to {ports[3]} and debug to false in the section [{target}]. "
            f"Everything "
            "else, comments and the other sections included, must stay exactly as it is.\n"
        ),
        files={"service.ini": "\n".join(before)},
        expected={"service.ini": Check(kind="bytes", value="\n".join(after))},
        steps=(
            Step(thought="I look at the file as it is.", command="cat -A service.ini"),
            Step(
                thought="sed can limit its changes to this section: from its head to the next blank.",
                command=(
                    f"sed -i '/^\\[{target}\\]$/,/^$/ {{ s/^port = .*/port = {ports[3]}/; "
                    "s/^debug = .*/debug = false/; }' service.ini"
                ),
            ),
            Step(thought="I check that only this section changed.", command="cat service.ini"),
        ),
        difficulty="medium",
    )
