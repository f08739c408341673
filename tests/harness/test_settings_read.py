"""A harness that reads files of the user's: a run is not gone on with when these were edited meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import JsonValue

from orchard_core import ConfigError, Harness, Rollout, SettingsRead, load_harness, run_rollouts
from orchard_core.testing import FakeModel, FakeProvider, FakeReply, FakeTaskSet

SUBMIT = FakeReply.call("bash", command="echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")
ADAPTER = """
packages = ["some-cli@1.0.0"]
path = "bin/some"
events = "orchard_harness_cli.events:pi"
argv = ["run"]
"""


async def run(out: Path, harness: Harness, *, resume: bool = False) -> list[Rollout]:
    provider = FakeProvider()
    try:
        rollouts = run_rollouts(
            FakeTaskSet.of(1),
            harness=harness,
            model=FakeModel([SUBMIT]),
            sandbox=provider,
            out=out,
            resume=resume,
        )
        return [rollout async for rollout in rollouts]
    finally:
        await provider.close()


def miniswe(where: Path) -> Callable[[str], Harness]:
    """mini-swe-agent with a file of settings."""
    from minisweagent.config import builtin_config_dir

    stock = (builtin_config_dir / "mini.yaml").read_text()
    path = where / "mine.yaml"

    def made(more: str) -> Harness:
        path.write_text(
            f"{stock}\n# a remark\n" if not more else stock.replace("agent:", f"agent:\n  {more}", 1)
        )
        return load_harness("miniswe", config_file=str(path))

    return made


def cli(where: Path) -> Callable[[str], Harness]:
    """A CLI with an adapter of the user's own."""
    path = where / "mine.toml"

    def made(more: str) -> Harness:
        path.write_text(ADAPTER + more)
        return load_harness(f"cli:{path}")

    return made


def command(where: Path) -> Callable[[str], Harness]:
    """A program of the user's own."""
    path = where / "mine.sh"

    def made(more: str) -> Harness:
        path.write_text(f"#!/bin/sh\n{more}\n")
        path.chmod(0o755)
        return load_harness(f"command:{path}")

    return made


async def test_a_config_file_edited_between_two_starts_is_noticed(tmp_path: Path) -> None:
    made = miniswe(tmp_path)
    (rollout,) = await run(tmp_path / "run", made(""))
    assert rollout.result is not None
    assert await run(tmp_path / "run", made(""), resume=True) == []
    with pytest.raises(ConfigError, match="harness_settings"):
        await run(tmp_path / "run", made("wall_time_limit_seconds: 7"), resume=True)


@pytest.mark.parametrize(
    ("kind", "edit"),
    [(miniswe, "wall_time_limit_seconds: 7"), (cli, 'note = "edited"'), (command, "exit 3")],
)
def test_what_was_read_is_the_same_until_the_file_says_something_else(
    tmp_path: Path, kind: Callable[[Path], Callable[[str], Harness]], edit: str
) -> None:
    made = kind(tmp_path)
    first, again, edited = (read(made(more)) for more in ("", "", edit))
    assert first == again != edited


def test_two_programs_of_the_harness_command_are_two_harnesses_by_their_arguments_too(tmp_path: Path) -> None:
    first, second = (read(load_harness(f"command:/bin/sh -c 'exit {number}'")) for number in (1, 2))
    assert first != second
    assert first == read(load_harness("command:/bin/sh -c 'exit 1'"))


def read(harness: Harness) -> JsonValue:
    assert isinstance(harness, SettingsRead)
    return harness.settings_read
