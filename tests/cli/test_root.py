"""The root command, errors and exit codes."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import orchard_core
from orchard_core.cli.exits import Exit

from .conftest import ARGV, ROOT, Orchard, environment

BOOM = """
from orchard_core import hookimpl

@hookimpl
def orchard_commands(app):
    @app.command()
    def boom(how: str):
        \"\"\"Break in a chosen way.\"\"\"
        import orchard_core
        if how == "bug":
            raise RuntimeError("\\x1b[31mnobody thought of this")
        if how == "interrupt":
            raise KeyboardInterrupt
        raise getattr(orchard_core, how)("it broke", hint="mend it")

    @app.command()
    def plugins():
        \"\"\"Try to take the place of a built-in command.\"\"\"
"""


@pytest.fixture
def boom(orchard: Orchard, plugin_path: Callable[[str, str], str]) -> Orchard:
    path = plugin_path("boom", BOOM)
    return lambda *args, **extra: orchard(*args, PYTHONPATH=path, **extra)


def test_version(orchard: Orchard) -> None:
    assert orchard("--version").stdout == f"orchard {orchard_core.__version__}\n"


def test_help_names_every_command_in_its_section(orchard: Orchard) -> None:
    done = orchard("--help")
    assert done.returncode == Exit.OK
    assert re.search(r"Run:\n  demo .*\n  run .*\n  matrix .*\n  doctor .*\n  regrade ", done.stdout)
    looked_at = r"Look at results:\n  show .*\n  samples .*\n  report .*\n  view .*\n  runs "
    assert re.search(looked_at, done.stdout)


@pytest.mark.parametrize("group", [(), ("data",), ("runs",)])
def test_no_summary_in_the_help_is_cut_off_at_80_columns(orchard: Orchard, group: tuple[str, ...]) -> None:
    assert "..." not in orchard(*group, "--help", COLUMNS="80").stdout.replace("[ARGS]...", "")


def test_without_a_command_the_help_is_shown_and_the_code_says_usage(orchard: Orchard) -> None:
    done = orchard()
    assert done.returncode == Exit.USAGE
    assert "Look at results" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["rum"], "Did you mean"),
        (["run", "--harnes", "x"], "--harness"),
        (["run", "workbench:1", "--attempts", "many"], "attempts"),
        (["run"], "no task set was named"),
        (["run", "workbench:1"], "no model was named"),
        (["run", "nosuch:1", "--model", "oracle"], "nosuch"),
        (["run", "workbench:1", "--model", "oracle", "--harness", "reakt"], "did you mean 'react'"),
        (["run", "missing.yaml"], "recipe missing.yaml cannot be read: No such file or directory\n"),
        (["run", "workbench:1", "--model", "oracle", "--max-turns", "0"], "'limits.turns' should be"),
        (["run", "workbench:1", "--model", "oracle", "--max-cost", "-1"], "'limits.cost_usd' should be"),
        (["run", "workbench:1", "--model", "oracle", "--timeout", "-1"], "'limits.wall_clock_s' should"),
        (
            ["run", "workbench:1", "--model", "oracle", "--out", "/dev/null/x"],
            "/dev/null/x cannot be made: Not",
        ),
        (
            ["run", "workbench:1", "--model", "oracle", "--harness-option", "malformd_limit=3"],
            "unknown option 'malformd_limit' of harness react; did you mean 'malformed_limit'?",
        ),
        (["new", "harnes", "x"], "'harnes' is not one of 'harness'"),
        (["run", "--resume"], "--resume needs the run"),
        (["run", "--resume", "--out", "nowhere"], "there is no run at nowhere"),
        (["show", "nowhere"], "there is no run at nowhere"),
        (["report", "nowhere"], "there is no run at nowhere"),
        (["tasks", "show", "workbench:1", "no-such-task"], "has no task 'no-such-task'"),
        (["doctor", "workbench:1", "--task", "zzz"], "no task of workbench:1 matches 'zzz'"),
    ],
)
def test_a_wrong_command_says_what_is_wrong_on_stderr(orchard: Orchard, args: list[str], said: str) -> None:
    done = orchard(*args)
    assert done.returncode == Exit.USAGE, done.stderr
    assert said in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert "Value error" not in done.stderr
    assert "Extra inputs" not in done.stderr


@pytest.mark.parametrize(
    ("command", "usage"),
    [
        ("show", "RUN [ROLLOUT]"),
        ("samples", "RUN ROLLOUT"),
        ("report", "PATH..."),
        ("matrix", "[MATRIX.yaml]"),
        ("new", "KIND NAME"),
        ("check", "PLUGIN..."),
    ],
)
def test_help_is_in_plain_words_not_in_those_of_types(orchard: Orchard, command: str, usage: str) -> None:
    told = orchard(command, "--help").stdout
    assert told.startswith(f"Usage: orchard {command} [OPTIONS] {usage}\n")
    assert not set("{}<") & set(told)


def test_an_error_is_one_message_and_one_hint(boom: Orchard) -> None:
    done = boom("boom", "ConfigError")
    assert done.stderr == "error: it broke\nhint:  mend it\n"


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("ConfigError", Exit.USAGE),
        ("UnknownPlugin", Exit.USAGE),
        ("SandboxUnavailable", Exit.USAGE),
        ("RunLocked", Exit.USAGE),
        ("SandboxCreateFailed", Exit.FAILED),
        ("ModelUnavailable", Exit.FAILED),
        ("RecordCorrupt", Exit.FAILED),
        ("bug", Exit.BUG),
        ("interrupt", Exit.INTERRUPTED),
    ],
)
def test_each_sort_of_error_has_its_exit_code(boom: Orchard, how: str, code: Exit) -> None:
    done = boom("boom", how)
    assert done.returncode == code
    assert "Traceback" not in done.stderr


def test_a_bug_says_how_to_get_the_traceback_and_is_clean(boom: Orchard) -> None:
    done = boom("boom", "bug")
    assert "unexpected RuntimeError: nobody thought of this" in done.stderr
    assert "--debug" in done.stderr
    assert "\x1b" not in done.stderr


def test_debug_shows_the_traceback(boom: Orchard) -> None:
    assert "Traceback" in boom("--debug", "boom", "bug").stderr
    assert "Traceback" in boom("boom", "bug", ORCHARD_DEBUG="1").stderr
    assert "Traceback" not in boom("boom", "bug", ORCHARD_DEBUG="0").stderr


def test_a_plugin_adds_a_command_and_cannot_replace_a_built_in_one(boom: Orchard) -> None:
    assert "Break in a chosen way." in boom("--help").stdout
    assert boom("plugins").stdout.startswith("KIND")


def test_a_plugin_whose_commands_break_is_named_once_and_the_rest_works(
    orchard: Orchard, plugin_path: Callable[[str, str], str]
) -> None:
    source = "from orchard_core import hookimpl\n\n@hookimpl\ndef orchard_commands(app):\n    1 / 0\n"
    done = orchard("--help", PYTHONPATH=plugin_path("bad", source))
    assert done.returncode == Exit.OK
    assert "Look at results" in done.stdout
    assert done.stderr.count("left out: plugin 'bad' of bad 1.0") == 1


def test_an_output_without_room_is_said_and_is_no_bug() -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        done = subprocess.run(
            [*ARGV, "plugins"], stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=environment()
        )
    assert done.returncode == Exit.FAILED
    assert "cannot be written: No space left on device" in done.stderr


def test_what_a_plugin_prints_on_import_is_not_in_the_output(
    orchard: Orchard, plugin_path: Callable[[str, str], str]
) -> None:
    done = orchard("plugins", "--json", PYTHONPATH=plugin_path("chatty", 'print("hello")\n'))
    json.loads(done.stdout)
    assert "hello" in done.stderr


def test_a_path_that_the_machine_refuses_is_named_and_is_no_bug(orchard: Orchard) -> None:
    done = orchard("report", "d" * 300)
    assert done.returncode == Exit.FAILED
    assert "ddd…: File name too long" in done.stderr or "ddd: File name too long" in done.stderr
    assert "bug" not in done.stderr


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    command = f"{' '.join(ARGV)} plugins | :; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == Exit.BROKEN_PIPE
    assert done.stderr == ""


def test_the_documented_exit_codes_are_the_real_ones() -> None:
    text = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)} == {
        int(code) for code in Exit
    }


def test_completion_offers_commands(orchard: Orchard) -> None:
    done = orchard(_ORCHARD_COMPLETE="complete_bash", COMP_WORDS="orchard ru", COMP_CWORD="1")
    assert done.stdout.split() == ["run", "runs"]
