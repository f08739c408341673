"""Adapters: ours and the user's."""

from __future__ import annotations

from pathlib import Path

import pytest
from orchard_harness_cli.adapter import CLIS, find_adapter
from orchard_harness_cli.config import CliConfig
from orchard_harness_cli.events import claude, codex, opencode, pi
from orchard_harness_cli.harness import Cli

from orchard_core import ConfigError, StopReason, Told

NAMES = sorted(path.stem for path in CLIS.glob("*.toml"))
VALUES = dict.fromkeys(
    ("instruction", "model", "key", "base_url", "root_url", "tools_url", "home", "turns"), 'x"y\\'
) | {"context_window": "1000", "max_output": "10"}


@pytest.mark.parametrize("name", NAMES)
def test_each_of_ours_names_exact_versions_and_fills_all_its_values(name: str) -> None:
    adapter = find_adapter(name)
    assert all(package.rpartition("@")[2][0].isdigit() for package in adapter.packages)
    program = adapter.program(VALUES, mcp=True, turns=True)
    assert "$" not in "".join(program.argv)
    assert {item.mode for item in program.files} <= {0o600}
    assert callable(adapter.reader())


def test_a_value_with_quotes_stays_one_value_in_the_files() -> None:
    (models,) = [
        item.content.decode()
        for item in find_adapter("pi").program(VALUES, mcp=False, turns=False).files
        if item.path.endswith("models.json")
    ]
    assert r'"baseUrl": "x\"y\\"' in models


def test_kimi_is_marked_in_every_record() -> None:
    assert Cli(CliConfig(cli="kimi")).version.endswith("(kimi 2.1.0, evaluation only)")


def test_an_unknown_cli_says_which_are_known() -> None:
    with pytest.raises(ConfigError) as caught:
        find_adapter("vim")
    assert "claude, codex, kimi, opencode, pi" in caught.value.hint


def test_one_of_the_user_s_own_is_a_file(tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    own.write_text((CLIS / "pi.toml").read_text() + "\n")
    harness = Cli(CliConfig(cli=str(own)))
    assert (harness.name, harness.capabilities) == ("cli:mine", Cli(CliConfig(cli="pi")).capabilities)


@pytest.mark.parametrize(
    "text",
    ["packages = 1", "= nonsense", 'packages = ["a@1"]\npath = "a"\nargv = []\nevents = "no.such:one"'],
)
def test_a_wrong_file_is_refused_before_anything_starts(tmp_path: Path, text: str) -> None:
    own = tmp_path / "mine.toml"
    own.write_text(text)
    with pytest.raises(ConfigError):
        Cli(CliConfig(cli=str(own)))


@pytest.mark.parametrize("read", [claude, codex, opencode, pi])
@pytest.mark.parametrize(
    "event",
    [{}, {"type": 3}, {"type": "result"}, {"type": "item.completed", "item": []}, {"type": "message_end"},
     {"type": "assistant", "message": "?"}, {"type": "error"}, {"type": "turn.failed"}, {"type": "text"}],
)  # fmt: skip
def test_strange_events_are_no_crash(read: object, event: dict[str, object]) -> None:
    assert callable(read)
    read(event, Told())


def test_claude_s_own_turn_limit_is_no_error() -> None:
    told = Told()
    claude({"type": "result", "subtype": "error_max_turns", "is_error": True}, told)
    assert (told.stop, told.error) == (StopReason.TURN_LIMIT, "")
