"""`orchard data export` and `import` as processes: whole or not at all, gone on with, nothing lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from orchard_core import DatasetWriter, ShardLimits, load_format, open_dataset, read_rows
from orchard_core.cli.data.chosen import Chosen
from orchard_core.cli.data.moving import plan_of
from orchard_core.datasets.reading import find_source
from orchard_core.testing.suites.format_rows import chat, plain_rows, row
from tests.cli.conftest import ARGV, Completed, Orchard, command, environment

from .talks import same


@pytest.fixture
def orchard(tmp_path: Path) -> Orchard:
    """The command in a directory with `rows.jsonl`."""
    load_format("hf").write(plain_rows(), tmp_path / "rows.jsonl")
    return command(tmp_path)


def test_a_file_becomes_a_dataset_and_a_file_again(orchard: Orchard, tmp_path: Path) -> None:
    made = orchard("data", "import", "rows.jsonl", "--out", "ds", "--json")
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout) == {"rows": 6, "resumed": 0, "format": "hf", "out": "ds"}
    assert [same(item) for item in open_dataset(tmp_path / "ds")] == [same(item) for item in plain_rows()]
    assert orchard("data", "export", "ds", "--format", "atif", "--out", "deep/er/atif").returncode == 0
    assert [same(item) for item in read_rows(tmp_path / "deep/er/atif")] == [
        same(item) for item in plain_rows()
    ]


def test_rows_are_chosen_by_what_they_say(orchard: Orchard, tmp_path: Path) -> None:
    def ids(*flags: str) -> list[str]:
        done = orchard("data", "export", "rows.jsonl", "--out", "out.jsonl", *flags)
        assert done.returncode == 0, done.stderr
        found = [item.id for item in read_rows(tmp_path / "out.jsonl")]
        (tmp_path / "out.jsonl").unlink()
        return found

    assert ids("--where", "harness=miniswe") == ["row-3"]
    assert ids("--where", "harness=miniswe", "--where", "harness=react", "--limit", "2") == ["row-0", "row-1"]
    assert ids("--where", "outcome=") == ["row-4"]
    assert ids("--min-reward", "0.5") == ["row-0", "row-1", "row-2", "row-5"]


def test_the_manifest_says_what_was_read_and_what_of_it_was_left_out(
    orchard: Orchard, tmp_path: Path
) -> None:
    done = orchard("data", "import", "rows.jsonl", "--out", "ds", "--where", "harness=miniswe")
    assert done.returncode == 0, done.stderr
    (source,) = open_dataset(tmp_path / "ds").manifest.made.sources
    assert (source.read, source.kept, source.dropped) == (6, 1, {"where": 5})


@pytest.mark.parametrize("made", [("export", "out.jsonl"), ("import", "ds")])
def test_a_choice_that_no_row_meets_is_refused_with_what_there_is(
    orchard: Orchard, tmp_path: Path, made: tuple[str, str]
) -> None:
    done = orchard("data", made[0], "rows.jsonl", "--out", made[1], "--where", "harness=reakt")
    assert "none of the 6 rows is what was asked for" in said(done, code=2)
    assert "for --where harness= there is miniswe, react" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.jsonl"]


@pytest.mark.parametrize("format_name", ["hf", "orchard-swe", "atif", "miniswe"])
def test_a_name_of_a_file_that_a_format_cannot_write_makes_no_directory(
    orchard: Orchard, tmp_path: Path, format_name: str
) -> None:
    done = orchard("data", "export", "rows.jsonl", "--format", format_name, "--out", "rows.csv")
    assert "is the name of a file that this format cannot write" in said(done, code=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.jsonl"]


def said(done: Completed, *, code: int) -> str:
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_what_is_there_is_never_touched(orchard: Orchard, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("precious")
    for out in ("kept", "rows.jsonl", "."):
        assert "is there already" in said(orchard("data", "export", "rows.jsonl", "--out", out), code=2)
    assert (tmp_path / "kept").read_text() == "precious"
    assert orchard("data", "import", "rows.jsonl", "--out", "ds").returncode == 0
    assert "already" in said(orchard("data", "import", "rows.jsonl", "--out", "ds"), code=2)


def test_a_dataset_inside_of_what_it_is_made_from_is_refused(orchard: Orchard, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "rows.jsonl").rename(tmp_path / "in/rows.jsonl")
    done = orchard("data", "import", "in", "--out", "in/ds")
    assert (done.returncode, "in/ds lies inside of in" in done.stderr) == (2, True)
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["rows.jsonl"]


def test_errors_say_what_to_do(orchard: Orchard, tmp_path: Path) -> None:
    export = ("data", "export", "rows.jsonl", "--out", "o")
    assert "only read" in said(orchard(*export, "--format", "openhands"), code=2)
    assert "hint" in said(orchard(*export, "--format", "nothing"), code=2)
    assert "shape" in said(orchard(*export, "--format", "hf:nothing"), code=2)
    assert "names: harness" in said(orchard(*export, "--where", "colour=red"), code=2)
    assert "--threads" in said(orchard(*export, "--threads", "all"), code=2)
    assert "nothing at missing" in said(orchard("data", "import", "missing", "--out", "o"), code=2)
    (tmp_path / "broken.jsonl").write_text('{"messages": []}\n{"messages": [{"role": 5}]}')
    broken = said(orchard("data", "import", "broken.jsonl", "--out", "o"), code=3)
    assert "row 1, field messages[0].role" in broken.replace("\n", " ")
    assert not (tmp_path / "o" / "manifest.json").exists()


def test_hostile_names_do_not_reach_the_terminal(orchard: Orchard, tmp_path: Path) -> None:
    name = "a\x1b[31mb\nerror: forged.jsonl"
    (tmp_path / name).write_text('{"messages": [{"role": 5}]}')
    done = orchard("data", "import", name, "--out", "o")
    assert done.returncode == 3
    assert "\x1b" not in done.stderr
    assert [line for line in done.stderr.splitlines() if line.startswith("error: ")] == ["error: ab"]


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Enough rows that a command is caught at work."""
    path = tmp_path / "many.jsonl"
    load_format("hf").write((row(n, chat(f"{n} " * 600)) for n in range(12_000)), path)
    return path


def killed(where: Path, *arguments: str, when: Path, number: int) -> None:
    """Start the command, and end it by a signal as soon as `when` is there and grows."""
    process = subprocess.Popen(
        [*ARGV, *arguments],
        cwd=where,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 240
    while process.poll() is None and time.monotonic() < deadline:
        if when.exists() and size(when) > 0:
            break
        time.sleep(0.01)
    os.kill(process.pid, number)
    process.wait(240)
    assert process.returncode != 0, "it was too quick to be caught"


def size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(found.stat().st_size for found in path.rglob("*") if found.is_file())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("out", ["out.jsonl", "out"])
def test_a_killed_export_leaves_nothing_and_starts_anew(many: Path, out: str, number: int) -> None:
    where = many.parent
    killed(where, "data", "export", many.name, "--out", out, when=where / f".{out}.partial", number=number)
    assert not (where / out).exists()
    done = command(where)("data", "export", many.name, "--out", out, "--json")
    assert json.loads(done.stdout)["rows"] == 12_000
    assert sum(1 for _ in read_rows(where / out)) == 12_000
    assert not list(where.glob(".*.partial"))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_import_is_gone_on_with(many: Path, number: int) -> None:
    where = many.parent
    killed(where, "data", "import", many.name, "--out", "ds", when=where / "ds" / ".partial", number=number)
    assert not (where / "ds" / "manifest.json").exists()
    done = command(where)("data", "import", many.name, "--out", "ds", "--json")
    assert done.returncode == 0, done.stderr
    assert [item.id for item in open_dataset(where / "ds")] == [f"row-{n}" for n in range(12_000)]


@pytest.mark.parametrize("written", [False, True])
def test_an_import_does_not_go_on_with_a_file_that_was_written_to_since(
    orchard: Orchard, tmp_path: Path, written: bool
) -> None:
    rows = tmp_path / "rows.jsonl"
    chosen = Chosen.of((), min_reward=None, limit=None, threads="main")
    limits = ShardLimits(group_rows=1, shard_rows=1)
    begun = DatasetWriter(tmp_path / "ds", plan=plan_of(find_source(rows), {}, None, chosen), limits=limits)
    begun.write(next(iter(read_rows(rows))))
    begun.close()
    if written:
        rows.write_bytes(rows.read_bytes().replace(b"row-0", b"row-9"))
    done = orchard("data", "import", "rows.jsonl", "--out", "ds", "--json")
    if written:
        assert (done.returncode, "recipe or other sources" in done.stderr) == (2, True)
    else:
        assert json.loads(done.stdout)["resumed"] == 1


def test_two_at_once_do_not_write_over_each_other(many: Path) -> None:
    where = many.parent
    first = subprocess.Popen(
        [*ARGV, "data", "export", many.name, "--out", "o.jsonl"], cwd=where, env=environment()
    )
    while not (where / ".o.jsonl.partial").exists() and first.poll() is None:
        time.sleep(0.01)
    second = command(where)("data", "export", many.name, "--out", "o.jsonl")
    assert first.wait(60) == 0
    assert second.returncode == 2
    assert "another process" in second.stderr or "is there already" in second.stderr
    assert sum(1 for _ in read_rows(where / "o.jsonl")) == 12_000


def test_orchard_check_holds_a_format_to_its_contract(orchard: Orchard) -> None:
    done = orchard("check", "format:openhands", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    (checked,) = json.loads(done.stdout)
    assert checked["failed"] == []
    assert checked["passed"] > 5
