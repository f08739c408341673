"""`orchard data stats` and `orchard data verify`, the real commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchard_core.cli.exits import Exit
from tests.cli.conftest import Orchard, command

from .making import make_row
from .store.forging import forge, put, write


@pytest.fixture
def orchard(tmp_path: Path) -> Orchard:
    return command(tmp_path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(tmp_path / "d", [make_row(number) for number in range(6)])


def test_stats_are_a_table_for_each_grouping(orchard: Orchard, root: Path) -> None:
    done = orchard("data", "stats", "d", "--by", "harness", "--by", "split,outcome")
    assert done.returncode == Exit.OK, done.stderr
    tables = [block.splitlines() for block in done.stdout.split("\n\n")]
    assert tables[0][1].split()[:3] == ["rows", "6", "6"]
    assert tables[1][0].startswith("HARNESS  ROWS  TASKS  RESOLVED")
    assert [line.split()[:2] for line in tables[1][1:]] == [["miniswe", "3"], ["react", "3"]]
    assert tables[2][0].startswith("SPLIT  OUTCOME")
    assert "tokens of 6 rows are estimated" in done.stdout
    assert "stats: 6 rows" in done.stderr


def test_by_themselves_come_the_tables_and_columns_that_tell_something(
    orchard: Orchard, tmp_path: Path
) -> None:
    write(tmp_path / "plain", [make_row(number) for number in range(4)])
    blocks = orchard("data", "stats", "plain").stdout.split("\n\n")
    assert [block.split()[0] for block in blocks[:2]] == ["ALL", "HARNESS"]
    assert "MODEL" not in "".join(blocks), "there is one"
    assert "CREDIT" not in blocks[0], "none was assigned"
    write(tmp_path / "credited", [make_row(number, credit="judge") for number in range(4)])
    assert "judge 4" in orchard("data", "stats", "credited").stdout


def test_stats_as_json_hold_everything(orchard: Orchard, root: Path) -> None:
    done = orchard("data", "stats", "d", "d", "--json", "--threshold", "0.5")
    told = json.loads(done.stdout)
    assert (told["total"]["rows"], told["total"]["resolved"], told["threshold"]) == (12, 4, 0.5)
    assert told["groups"][0][0]["by"] == {"split": ""}


def test_a_grouping_that_is_none_is_refused_with_those_that_are(orchard: Orchard, root: Path) -> None:
    done = orchard("data", "stats", "d", "--by", "colour")
    assert done.returncode == Exit.USAGE
    assert "harness" in done.stderr


def test_a_path_without_rows_is_refused(orchard: Orchard, tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    done = orchard("data", "stats", "x")
    assert done.returncode == Exit.USAGE
    assert "nothing that can be read as rows" in done.stderr


def test_control_codes_in_names_do_not_reach_the_terminal(orchard: Orchard, tmp_path: Path) -> None:
    write(tmp_path / "d", [make_row(0, harness="re\x1b[31mact\x07")])
    done = orchard("data", "stats", "d", "--by", "harness")
    assert done.returncode == Exit.OK, done.stderr
    assert "\x1b" not in done.stdout
    assert "react" in done.stdout


def test_a_sound_dataset_ends_with_0(orchard: Orchard, root: Path) -> None:
    done = orchard("data", "verify", "d", "--deep")
    assert (done.returncode, done.stdout) == (Exit.OK, "6 rows in 1 file in depth: nothing is wrong\n")


def test_faults_end_with_1_and_are_listed_by_file_row_and_field(orchard: Orchard, root: Path) -> None:
    path = forge(root, put("messages", 4, "none"))
    done = orchard("data", "verify", "d", "--deep")
    assert done.returncode == Exit.UNSOUND
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["FILE", "ROW", "FIELD", "WRONG"]
    assert lines[1].split()[:3] == [f"data/{path.name}", "4", "messages"]
    assert lines[-1] == "6 rows in 1 file in depth: 1 fault"


def test_faults_as_json(orchard: Orchard, root: Path) -> None:
    forge(root, put("turns", 2, 7))
    done = orchard("data", "verify", "d", "--deep", "--json")
    told = json.loads(done.stdout)
    assert done.returncode == Exit.UNSOUND
    assert not told["sound"]
    assert [fault["field"] for fault in told["faults"]] == ["turns", "splits.train.turns"]


def test_where_there_is_no_dataset_is_told(orchard: Orchard) -> None:
    done = orchard("data", "verify", "none")
    assert done.returncode == Exit.USAGE
    assert "there is no dataset at none" in done.stderr
