"""`orchard env keys` and `orchard env tenants` as an operator uses them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from orchard_env.cli.app import app
from orchard_env.service.tenancy.key_file import read_key_file
from orchard_env.service.tenancy.secret import PATTERN, matches
from typer.testing import CliRunner, Result

from orchard_core import ConfigError

NO_PLACE = dict.fromkeys(("ORCHARD_ENV_KEYS", "ORCHARD_ENV_REDIS_URL"))
"""An environment that names no place for keys."""


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


def orchard(*words: str, keys: Path | None = None) -> Result:
    given = [] if keys is None else ["--keys", str(keys)]
    return CliRunner().invoke(app, [*words, *given], env=NO_PLACE)


def listed(keys: Path) -> dict[str, dict[str, str]]:
    found = json.loads(orchard("keys", "list", "--json", keys=keys).stdout)
    return {key["id"]: key for key in found}


def test_a_new_key_stands_alone_on_standard_output_and_in_no_list(keys: Path) -> None:
    text = orchard("keys", "create", "alice", "--note", "ci", keys=keys).stdout.strip()
    assert re.fullmatch(PATTERN, text)
    for words in (["keys", "list"], ["keys", "list", "--json"]):
        shown = orchard(*words, keys=keys).stdout
        assert text[4:16] in shown
        assert text[17:] not in shown
    assert text[17:] not in keys.read_text()


def test_a_key_is_rotated_with_an_overlap_and_revoked_for_good(keys: Path) -> None:
    old = orchard("keys", "create", "alice", "--scope", "read", keys=keys).stdout.strip()[4:16]
    new = json.loads(orchard("keys", "rotate", old, "--overlap", "1h", "--json", keys=keys).stdout)
    assert (new["tenant"], new["scopes"]) == ("alice", "read")
    assert listed(keys)[old]["status"] == "good"
    assert listed(keys)[old]["replaced_by"] == new["id"]
    said = orchard("keys", "revoke", old, keys=keys)
    assert (said.exit_code, "is revoked" in said.stdout) == (0, True)
    assert {key["status"] for key in listed(keys).values()} == {"revoked", "good"}


def test_a_key_that_exists_already_is_taken_in_once(keys: Path, tmp_path: Path) -> None:
    text = orchard("keys", "create", "alice", keys=tmp_path / "elsewhere.json").stdout.strip()
    given = tmp_path / "api-key"
    given.write_text(text + "\n")
    words = ("keys", "adopt", "ops", "--scope", "admin", "--key-file", str(given))
    for _ in range(2):
        said = orchard(*words, keys=keys)
        assert (said.exit_code, said.output) == (0, f"the key {text[4:16]} of ops is good\n")
    assert matches(text, read_key_file(keys).keys[0])
    assert [(key["tenant"], key["scopes"]) for key in listed(keys).values()] == [("ops", "admin")]
    orchard("keys", "revoke", text[4:16], keys=keys)
    assert orchard(*words, keys=keys).stdout == f"the key {text[4:16]} of ops is revoked\n"


def test_what_is_no_key_or_anothers_is_not_taken_in(keys: Path, tmp_path: Path) -> None:
    text = orchard("keys", "create", "alice", keys=keys).stdout.strip()
    given = tmp_path / "api-key"
    for forged, why in (("ork_secret", "no API key"), (text[:17] + "A" * 43, "another key has the id")):
        given.write_text(forged)
        said = orchard("keys", "adopt", "mallory", "--key-file", str(given), keys=keys)
        assert isinstance(said.exception, ConfigError)
        assert why in said.exception.message
    assert [key["tenant"] for key in listed(keys).values()] == ["alice"]


def test_a_tenants_limits_are_set_one_by_one(keys: Path) -> None:
    orchard("tenants", "set", "alice", "--sandboxes", "5", keys=keys)
    orchard("tenants", "set", "alice", "--weight", "2", "--cpu", "1.5", keys=keys)
    assert orchard("tenants", "list", keys=keys).stdout == "alice: weight 2, sandboxes 5, cpu 1.5\n"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["keys", "create", "alice", "--scope", "root"], "no scope"),
        (["keys", "create", "alice", "--expires", "soon"], "no span of time"),
    ],
)
def test_what_is_no_scope_and_no_span_is_told_with_those_that_are(
    keys: Path, words: list[str], why: str
) -> None:
    said = orchard(*words, keys=keys)
    assert said.exit_code == 2
    assert why in said.output
    assert not keys.exists()


def test_without_a_place_for_keys_the_ways_to_name_one_are_told(keys: Path) -> None:
    said = orchard("keys", "list")
    assert isinstance(said.exception, ConfigError)
    assert "ORCHARD_ENV_REDIS_URL" in said.exception.hint
