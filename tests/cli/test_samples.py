"""`orchard samples`: how the calls of a stored rollout hang together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchard_core import SampleReport, open_run
from orchard_core.cli.exits import Exit

from .conftest import command

ANSWERS = """\
{"text": "look \\u001b]0;owned\\u0007", "calls": [{"name": "bash", "arguments": {"command": "ls"}}]}
{"text": "done", "calls": [{"name": "submit", "arguments": {}}]}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a run of one task by a model that tells no token ids."""
    where = tmp_path_factory.mktemp("samples")
    (where / "replies.jsonl").write_text(ANSWERS)
    done = command(where)("run", "workbench:1", "--model", "scripted:replies.jsonl", "--out", "run")
    assert done.returncode == Exit.OK, done.stderr
    return where


def test_the_threads_are_shown_by_messages_and_why_there_is_no_sample(place: Path) -> None:
    (rollout,) = open_run(place / "run")
    done = command(place)("samples", "run", rollout.id[:10])
    assert done.returncode == Exit.OK, done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if line]
    assert lines[1] == ["0", "main", "main", "0", "1", "-"]
    assert [line[:5] for line in lines[3:]] == [
        ["0", "0", "start", "-", "messages"],
        ["1", "0", "appended", "0", "messages"],
    ]
    assert "no training sample" in done.stderr
    assert "\x1b" not in done.stdout


def test_the_report_is_printed_as_json(place: Path) -> None:
    (rollout,) = open_run(place / "run")
    done = command(place)("samples", "run", rollout.task.id, "--json")
    report = SampleReport.model_validate(json.loads(done.stdout))
    assert [call.relation.value for call in report.calls] == ["start", "appended"]
    assert "no token ids" in report.unusable


def test_a_rollout_that_is_not_there_is_a_usage_error(place: Path) -> None:
    assert command(place)("samples", "run", "nothing").returncode == Exit.USAGE
