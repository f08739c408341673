"""`orchard plugins` tells good from broken."""

from __future__ import annotations

import json
from collections.abc import Callable

from orchard_core.cli.exits import Exit

from .conftest import Orchard

Install = Callable[[str, str], str]

GOOD = """
from orchard_core import Descriptor, hookimpl

@hookimpl
def orchard_harnesses():
    summary = "Shines \\x1b[31mbrightly"
    return [Descriptor(name="shiny", summary=summary, factory="nowhere.at:all", argument="level")]
"""


def test_a_good_plugin_is_listed_with_its_distribution_and_version(
    orchard: Orchard, plugin_path: Install
) -> None:
    done = orchard("plugins", PYTHONPATH=plugin_path("good", GOOD))
    assert done.returncode == Exit.OK, done.stdout
    (line,) = [line for line in done.stdout.splitlines() if "shiny" in line]
    assert line.split() == ["harness", "shiny", ":level", "Shines", "brightly", "good", "1.0"]


def test_a_broken_plugin_is_listed_with_its_cause_and_the_rest_works(
    orchard: Orchard, plugin_path: Install
) -> None:
    path = plugin_path("broken", "import no_such_module_anywhere")
    done = orchard("plugins", PYTHONPATH=path)
    assert done.returncode == Exit.UNSOUND
    assert "BROKEN broken (broken 1.0): failed to import" in done.stdout
    assert "No module named 'no_such_module_anywhere'" in done.stdout
    assert "mend: pip install" in done.stdout
    assert "oracle" in done.stdout
    assert orchard("--help", PYTHONPATH=path).returncode == Exit.OK


def test_as_json(orchard: Orchard, plugin_path: Install) -> None:
    plugin_path("good", GOOD)
    done = orchard("plugins", "--json", PYTHONPATH=plugin_path("broken", "raise ValueError('no')"))
    told = json.loads(done.stdout)
    (shiny,) = [one for one in told["plugins"] if one["name"] == "shiny"]
    assert (shiny["kind"], shiny["distribution"], shiny["version"]) == ("harness", "good", "1.0")
    (broken,) = told["broken"]
    assert (broken["plugin"], broken["fault"]) == ("broken", "failed to import")
    assert "ValueError: no" in broken["cause"]


def test_what_the_environment_leaves_out_is_named(orchard: Orchard, plugin_path: Install) -> None:
    done = orchard("plugins", PYTHONPATH=plugin_path("good", GOOD), ORCHARD_PLUGINS="")
    assert "shiny" not in done.stdout
    assert "left out by ORCHARD_PLUGINS: good (good 1.0)" in done.stdout


def test_a_broken_plugin_can_be_made_fatal(orchard: Orchard, plugin_path: Install) -> None:
    done = orchard("plugins", PYTHONPATH=plugin_path("broken", "1 / 0"), ORCHARD_PLUGINS_STRICT="1")
    assert done.returncode == Exit.USAGE
    assert "ZeroDivisionError" in done.stderr


def test_a_narrow_terminal_gets_narrow_lines() -> None:
    from orchard_core.cli.output import cells, table

    rows = [
        ("harness", "react", "a plain loop that calls tools " * 3, "orchard-harness-react 0.1.0"),
        ("模型", "漢字", "字" * 40, "x"),
    ]
    lines = table(("KIND", "NAME", "SUMMARY", "FROM"), rows, width=60)
    assert max(cells(line) for line in lines) < 60
    assert "".join(" ".join(lines).split()).count("loop") == 3, "nothing is cut"


def test_where_no_row_fits_in_a_line_each_column_gets_one() -> None:
    from orchard_core.cli.output import cells, table

    rows = [("react", "1,270/1,510/1,786", "79% of 48", "227"), ("mine", "5/6/10", "-", "about " * 9)]
    head = ("HARNESS", "TOKENS 50/90/MAX", "RESOLVED", "TRAINED TURNS")
    lines = table(head, rows, width=36)
    assert max(map(cells, lines)) < 36
    assert lines[:5] == [
        "HARNESS           react",
        "TOKENS 50/90/MAX  1,270/1,510/1,786",
        "RESOLVED          79% of 48",
        "TRAINED TURNS     227",
        "",
    ]
    assert " ".join(lines).count("about") == 9


def test_figures_between_slashes_stay_whole() -> None:
    from orchard_core.cli.output import table

    lines = table(("NAME", "TURNS"), [("react", "1,270/1,510/1,786")], width=18)
    assert lines == ["NAME   TURNS", "react  1,270/", "       1,510/", "       1,786"]


def test_a_pipe_gets_one_whole_line_a_row() -> None:
    from orchard_core.cli.output import table

    assert len(table(("A", "B"), [("x", "word " * 100)], width=None)) == 2
