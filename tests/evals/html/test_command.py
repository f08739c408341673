"""`orchard report` as a user runs it: what it writes, and where."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchard_core.cli.exits import Exit
from tests.cli.conftest import Orchard, command

from .making import write_matrix


@pytest.fixture
def orchard(tmp_path: Path) -> Orchard:
    """The command in a process of its own, run in an empty directory."""
    run = command(tmp_path)
    return lambda *args: run(*args, NO_COLOR="1")


@pytest.fixture
async def matrix(tmp_path: Path) -> Path:
    return await write_matrix(tmp_path / "m")


async def test_html_comes_with_json_and_markdown_beside_the_matrix(orchard: Orchard, matrix: Path) -> None:
    done = orchard("report", str(matrix), "--html")
    assert done.returncode == Exit.OK, done.stderr
    assert done.stdout == ""
    assert (matrix / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert len(json.loads((matrix / "report.json").read_text())["cells"]) == 4
    assert "| react | big | set |" in (matrix / "report.md").read_text()


async def test_the_name_of_the_output_says_what_is_written(orchard: Orchard, matrix: Path) -> None:
    for name, begins in (("a/x.html", "<!doctype"), ("x.json", "{"), ("x.md", "# Matrix")):
        assert orchard("report", str(matrix), "-o", name).returncode == Exit.OK
        assert (matrix.parent / name).read_text(encoding="utf-8").startswith(begins)
    assert (matrix.parent / "a" / "x.json").exists()


async def test_a_matrix_is_markdown_on_stdout_when_nothing_else_is_asked(
    orchard: Orchard, matrix: Path
) -> None:
    text = orchard("report", str(matrix)).stdout
    assert text.startswith("# Matrix")
    assert "p corrected" in text
    assert "needs a browser" in text
    assert len(json.loads(orchard("report", str(matrix), "--json").stdout)["differences"]) == 6


async def test_runs_are_reported_one_after_the_other(orchard: Orchard, matrix: Path) -> None:
    runs = [str(path) for path in sorted((matrix / "cells").iterdir())]
    assert orchard("report", *runs).stdout.count("\n## Provenance") == 4
    assert len(json.loads(orchard("report", *runs, "--json").stdout)["reports"]) == 4


async def test_several_runs_make_one_page_where_the_user_is(orchard: Orchard, matrix: Path) -> None:
    runs = [str(path) for path in sorted((matrix / "cells").iterdir())]
    assert orchard("report", *runs, "--html").returncode == Exit.OK
    assert (matrix.parent / "report.html").exists()


async def test_transcripts_lie_in_a_folder_beside_the_page(orchard: Orchard, matrix: Path) -> None:
    done = orchard("report", str(matrix), "--html", "--trajectories")
    assert "wrote 24 transcripts" in done.stderr
    assert len(list((matrix / "report-rollouts").glob("*.html"))) == 24
    assert 'href="report-rollouts/r1-1.html"' in (matrix / "report.html").read_text(encoding="utf-8")


async def test_a_damaged_record_is_named_and_the_rest_is_written(orchard: Orchard, matrix: Path) -> None:
    cell = sorted((matrix / "cells").iterdir())[0]
    for shard in (cell / "shards").iterdir():
        shard.write_bytes(b"\0" * shard.stat().st_size)
    done = orchard("report", str(matrix), "--html", "--trajectories")
    assert done.returncode == Exit.OK
    assert "wrote 18 transcripts" in done.stderr
    assert cell.name in done.stderr


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--trajectories"], "goes with --html"),
        (["--html", "--json"], "leave --json out"),
        (["--compare"], "compares runs"),
    ],
)
async def test_flags_that_do_not_go_together_are_refused(
    orchard: Orchard, matrix: Path, flags: list[str], says: str
) -> None:
    done = orchard("report", str(matrix), *flags)
    assert done.returncode == Exit.USAGE
    assert says in done.stderr


async def test_a_place_that_cannot_be_written_is_an_error_of_the_user(orchard: Orchard, matrix: Path) -> None:
    (matrix.parent / "file").write_text("")
    done = orchard("report", str(matrix), "-o", "file/x.html")
    assert done.returncode == Exit.USAGE
    assert "the report cannot be written" in done.stderr
