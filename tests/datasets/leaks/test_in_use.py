"""Leaks and near duplicates where users meet them: `orchard data verify --against`, `orchard data mix`."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from orchard_core import DatasetWriter, LeakCheck, open_dataset
from orchard_core.cli.exits import Exit
from orchard_core.cli.main import app
from orchard_core.datasets.verify import Verifier
from orchard_core.types.dataset import DatasetRow

from ..making import make_row
from .test_check import MERGE, words


def dataset(out: Path, *rows: DatasetRow) -> Path:
    with DatasetWriter(out) as writer:
        for row in rows:
            writer.write(row)
        writer.finish()
    return out


def benchmark(path: Path) -> str:
    path.write_text(f"{MERGE}\n", encoding="utf-8")
    return str(path)


def test_verify_names_the_row_and_the_benchmark_task_and_ends_with_1(tmp_path: Path) -> None:
    made = dataset(tmp_path / "set", make_row(0), make_row(1, task_text=MERGE.upper()))
    against = benchmark(tmp_path / "held-out.txt")
    done = CliRunner().invoke(app, ["data", "verify", str(made), "--against", against, "--json"])
    assert done.exit_code == 1, done.output
    (fault,) = json.loads(done.stdout)["faults"]
    assert (fault["row"], fault["field"]) == (1, "task")
    assert "line-1" in fault["message"]
    assert "held-out.txt" in fault["message"]
    assert CliRunner().invoke(app, ["data", "verify", str(made)]).exit_code == 0


def test_a_benchmark_that_is_none_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    made = dataset(tmp_path / "set", make_row(0))
    done = CliRunner().invoke(app, ["data", "verify", str(made), "--against", "no-such-bench"])
    assert done.exit_code == 2
    assert "no-such-bench" in done.output


def test_rows_that_share_an_id_and_not_a_text_are_each_looked_at(tmp_path: Path) -> None:
    rows = [make_row(0, task="0", task_text=words(1, 40)), make_row(1, task="0", task_text=MERGE)]
    made = dataset(tmp_path / "set", *rows)
    verifier = Verifier(made, leaks=LeakCheck.against(benchmark(tmp_path / "b.txt")))
    assert len(list(verifier.rows())) == 2
    assert [fault.row for fault in verifier.report().faults] == [1]


def test_a_mix_leaves_leaking_rows_out_and_keeps_near_duplicate_tasks_together(tmp_path: Path) -> None:
    texts = [words(number, 40) for number in range(20)]
    rows = [make_row(number, task_text=text, taskset="a") for number, text in enumerate(texts)]
    near = [
        make_row(100 + number, task_text=f"{text} please", taskset="b") for number, text in enumerate(texts)
    ]
    made = dataset(tmp_path / "in", *rows, *near, make_row(200, task_text=MERGE))
    flags = ["--leaks-against", benchmark(tmp_path / "b.txt"), "--split", "train=0.5", "--split", "test=0.5"]
    done = CliRunner().invoke(app, ["data", "mix", str(made), "--out", str(tmp_path / "out"), *flags])
    assert done.exit_code == 0, done.output
    mixed = open_dataset(tmp_path / "out")
    assert {row.id for row in mixed} == {row.id for row in [*rows, *near]}
    splits = {row.task_text.removesuffix(" please"): set[str]() for row in mixed}
    for row in mixed:
        splits[row.task_text.removesuffix(" please")].add(row.split)
    assert {len(found) for found in splits.values()} == {1}
    assert {name for found in splits.values() for name in found} == {"train", "test"}


def test_a_mix_that_refuses_leaks_ends_and_writes_no_dataset(tmp_path: Path) -> None:
    made = dataset(tmp_path / "in", make_row(0), make_row(1, task_text=MERGE))
    flags = ["--leaks-against", benchmark(tmp_path / "b.txt"), "--set", "leaks.action=refuse"]
    done = CliRunner().invoke(app, ["data", "mix", str(made), "--out", str(tmp_path / "out"), *flags])
    assert done.exit_code == Exit.FAILED
    assert "row row1 leaks: its task is 'line-1'" in " ".join(done.output.split())
    assert not (tmp_path / "out" / "manifest.json").exists()
