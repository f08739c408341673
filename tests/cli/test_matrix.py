"""`orchard matrix`, `orchard regrade` and `orchard runs diff` as a user meets them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
import yaml

from orchard_core.cli.exits import Exit

from .conftest import ARGV, Orchard, environment

SMALL = ("--harness", "react", "--model", "oracle", "--taskset", "workbench:2")


def test_a_matrix_is_run_gone_on_with_and_added_to(orchard: Orchard, tmp_path: Path) -> None:
    first = orchard("matrix", *SMALL, "--out", "m", "--json")
    assert first.returncode == Exit.OK, first.stderr
    told = json.loads(first.stdout)
    assert [(cell["key"]["harness"], cell["finished"]) for cell in told["cells"]] == [("react", 2)]
    again = orchard("matrix", "--out", "m", "--model", "noisy-oracle", "--json")
    cells = json.loads(again.stdout)["cells"]
    assert [(cell["key"]["model"], cell["key"]["taskset"]) for cell in cells] == [
        ("oracle", "workbench:2"),
        ("noisy-oracle", "workbench:2"),
    ]
    [first_cell] = [cell for cell in cells if cell["key"]["model"] == "oracle"]
    assert first_cell["seconds"] == told["cells"][0]["seconds"]
    cell = tmp_path / "m" / first_cell["run"]
    alone = orchard("run", "--resume", "--out", str(cell), "--json")
    assert json.loads(alone.stdout)["finished"] == 2


def test_a_matrix_is_shown_as_its_cells_with_their_directories(orchard: Orchard) -> None:
    orchard("matrix", *SMALL, "--harness", "cli:nosuch", "--limit", "1", "--out", "m")
    shown = orchard("show", "m")
    assert shown.returncode == Exit.OK, shown.stderr
    assert "m is a matrix of 2 cells, each a run" in shown.stderr
    ran, refused = shown.stdout.splitlines()[1:]
    assert "1/1" in ran
    assert "refused" in refused
    assert orchard("show", ran.split()[-1]).returncode == Exit.OK


def test_an_option_that_would_change_a_rollout_is_refused(orchard: Orchard) -> None:
    orchard("matrix", *SMALL, "--limit", "1", "--out", "m")
    done = orchard("matrix", "--out", "m", "--max-turns", "3")
    assert done.returncode == Exit.USAGE
    assert "limits.turns: None then, 3 now" in done.stderr


def test_a_refused_cell_is_shown_with_its_reason_and_gives_exit_code_1(orchard: Orchard) -> None:
    done = orchard("matrix", *SMALL, "--harness", "cli:nosuch", "--limit", "1", "--out", "m")
    assert done.returncode == Exit.UNSOUND
    assert "refused    cli:nosuch · oracle · workbench:2" in done.stdout
    assert "there is no CLI 'nosuch'" in done.stdout
    strict = orchard("matrix", *SMALL, "--harness", "cli:nosuch", "--out", "n", "--strict")
    assert strict.returncode == Exit.USAGE


def test_a_name_that_no_plugin_has_starts_nothing_and_says_what_was_meant(
    orchard: Orchard, tmp_path: Path
) -> None:
    done = orchard("matrix", *SMALL, "--harness", "reakt", "--out", "m")
    assert done.returncode == Exit.USAGE
    assert "there is no harness 'reakt'; did you mean 'react'?" in done.stderr
    assert not (tmp_path / "m" / "matrix.json").exists()
    assert orchard("matrix", *SMALL, "--model", "orakle", "--dry-run").returncode == Exit.USAGE


def test_a_bound_over_the_whole_stops_it_and_says_so(orchard: Orchard) -> None:
    done = orchard("matrix", *SMALL, "--max-tokens-total", "1", "--concurrency", "1", "--out", "m", "--json")
    assert done.returncode == Exit.UNSOUND
    assert "tokens of 1 are used up" in json.loads(done.stdout)["stopped"]
    assert "go on with: orchard matrix --out m" in done.stderr
    assert orchard("matrix", "--out", "m").returncode == Exit.OK


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "names no --harness and no --model and no --taskset"),
        (["--harness", "react"], "names no --model and no --taskset"),
        (["workbench:2"], "is not a YAML file"),
        ([*SMALL, "--retry-failed", "agent"], "what an agent did is never repeated"),
        ([*SMALL, "--harness-concurrency", "react"], "is not NAME=NUMBER"),
        ([*SMALL, "--harness", "react"], "names the harness 'react' twice"),
        (["--model-option", "rate=1"], "there are options for --model, which was not given"),
        ([*SMALL, "--model-option", "api_key=x"], "put it into the environment"),
    ],
    ids=["nothing", "a part", "no file", "a class", "a bound", "twice", "options of nothing", "a secret"],
)
def test_what_cannot_be_is_said_before_anything_starts(
    orchard: Orchard, tmp_path: Path, args: list[str], said: str
) -> None:
    done = orchard("matrix", *args, "--out", "m", "--dry-run")
    assert done.returncode == Exit.USAGE
    assert said in done.stderr
    assert not (tmp_path / "m").exists()


def test_a_yaml_file_gives_what_the_flags_give_and_prints_back(orchard: Orchard, tmp_path: Path) -> None:
    recipe = {
        "harnesses": ["react", {"name": "react", "label": "text", "options": {"protocol": "text"}}],
        "models": ["oracle"],
        "tasksets": ["workbench:2"],
        "harness_concurrency": {"text": 1},
        "attempts": 2,
    }
    (tmp_path / "m.yaml").write_text(yaml.safe_dump(recipe))
    printed = orchard("matrix", "m.yaml", "--attempts", "3", "--print-config")
    whole = yaml.safe_load(printed.stdout)
    assert (whole["attempts"], whole["harnesses"][1]["label"]) == (3, "text")
    (tmp_path / "whole.yaml").write_text(printed.stdout)
    assert orchard("matrix", "whole.yaml", "--print-config").stdout == printed.stdout
    dry = orchard("matrix", "m.yaml", "--dry-run")
    assert "would run 8 rollouts, 8 at once" in dry.stdout
    (tmp_path / "m.yaml").write_text(yaml.safe_dump(recipe | {"modles": ["x"]}))
    wrong = orchard("matrix", "m.yaml", "--dry-run")
    assert "unknown field 'modles'; did you mean 'models'?" in wrong.stderr


def test_harnesses_take_a_configuration_of_their_own_by_a_flag_as_in_a_run(orchard: Orchard) -> None:
    printed = orchard("matrix", *SMALL, "--harness-config", "own.yaml", "--print-config")
    parts = yaml.safe_load(printed.stdout)["harnesses"]
    assert [part["options"] for part in parts] == [{"config_file": "own.yaml"}] * len(parts)


def test_ctrl_c_stops_in_order_and_the_rest_is_run_later(orchard: Orchard, tmp_path: Path) -> None:
    running = subprocess.Popen(
        [*ARGV, "matrix", *SMALL, "--attempts", "16", "--concurrency", "1", "--out", "m"],
        cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert running.stderr is not None
    first = running.stderr.readline()  # told once the first rollout has started
    assert "1 cells" in first
    os.kill(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == Exit.INTERRUPTED
    assert "go on with: orchard matrix --out m" in said
    done = orchard("matrix", "--out", "m", "--json")
    assert json.loads(done.stdout)["cells"][0]["finished"] == 32


def test_a_run_is_graded_again_and_compared(orchard: Orchard, tmp_path: Path) -> None:
    orchard("run", "workbench:2", "--model", "oracle", "--out", "a")
    nothing = orchard("regrade", "a")
    assert nothing.returncode == Exit.OK
    assert "nothing to grade" in nothing.stdout
    graded = json.loads(orchard("regrade", "a", "--all", "--json").stdout)
    assert [(item["before"], item["after"], item["refused"]) for item in graded] == [(1.0, 1.0, "")] * 2
    assert orchard("regrade", "nowhere").returncode == Exit.USAGE
    orchard("run", "workbench:2", "--model", "noisy-oracle", "--attempts", "2", "--out", "b")
    text = orchard("runs", "diff", "a", "b", COLUMNS="80").stdout
    assert max(map(len, text.splitlines())) <= 80
    assert "model" in text
    assert "noisy-oracle" in text
    found = json.loads(orchard("runs", "diff", "a", "b", "--json").stdout)
    assert found["tasks"] == 2
    assert {item["field"] for item in found["comparison"]["config"]} >= {"model", "attempts"}


def test_a_run_and_a_matrix_do_not_share_a_directory(orchard: Orchard, tmp_path: Path) -> None:
    orchard("run", "workbench:1", "--model", "oracle", "--out", "r")
    mixed = orchard("matrix", *SMALL, "--out", "r")
    assert mixed.returncode == Exit.USAGE
    assert "r holds a run, not a matrix" in mixed.stderr
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "matrix.json").write_text("{}")
    mixed = orchard("run", "workbench:1", "--model", "oracle", "--out", "m")
    assert mixed.returncode == Exit.USAGE
    assert "m holds a matrix, not a run" in mixed.stderr


def test_a_bound_of_something_that_is_not_in_the_matrix_is_a_slip(orchard: Orchard) -> None:
    done = orchard("matrix", *SMALL, "--model-concurrency", "oracel=1", "--dry-run")
    assert done.returncode == Exit.USAGE
    assert "'oracel', which is not in the matrix" in done.stderr
    assert "name it as the table does: oracle" in done.stderr


def test_a_part_without_a_name_and_a_key_named_twice_are_refused(orchard: Orchard, tmp_path: Path) -> None:
    nameless = orchard("matrix", "--harness", "", "--model", "oracle", "--taskset", "workbench:1")
    assert nameless.returncode == Exit.USAGE
    (tmp_path / "m.yaml").write_text("harnesses: [react]\nmodels: [oracle]\nharnesses: [cli:pi]\n")
    doubled = orchard("matrix", "m.yaml")
    assert doubled.returncode == Exit.USAGE
    assert "names 'harnesses' (line 3) twice" in doubled.stderr


def test_a_damaged_plan_and_one_of_a_newer_orchard_are_told_apart(orchard: Orchard, tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    plan = tmp_path / "m" / "matrix.json"
    plan.write_text('{"schema_version": 1, "sha')
    damaged = orchard("report", "m")
    assert damaged.returncode == Exit.FAILED
    assert "m/matrix.json is damaged" in damaged.stderr
    assert "pydantic" not in damaged.stderr
    plan.write_text('{"schema_version": 99}')
    newer = orchard("matrix", "--out", "m")
    assert newer.returncode == Exit.FAILED
    assert "written by a newer Orchard (schema 99" in newer.stderr


def test_one_damaged_cell_hides_no_other_from_report_matrix_and_regrade(
    orchard: Orchard, tmp_path: Path
) -> None:
    orchard("matrix", *SMALL, "--model", "noisy-oracle", "--limit", "1", "--out", "m")
    [broken] = (tmp_path / "m" / "cells").glob("*noisy*")
    (broken / "run.json").write_text("garbage")
    report = json.loads(orchard("report", "m", "--json").stdout)
    assert [cell["key"]["model"] for cell in report["cells"]] == ["oracle"]
    assert "run.json is damaged" in report["refused"][0]["reason"]
    again = orchard("matrix", "--out", "m")
    assert again.returncode == Exit.UNSOUND
    assert "refused    react · noisy-oracle" in again.stdout
    graded = orchard("regrade", "m", "--all")
    assert graded.returncode == Exit.UNSOUND
    assert "passed over:" in graded.stderr
    assert "1 graded" in graded.stdout


def test_a_report_overwrites_neither_run_nor_matrix_nor_a_device(orchard: Orchard, tmp_path: Path) -> None:
    orchard("matrix", *SMALL, "--limit", "1", "--out", "m")
    plan = tmp_path / "m" / "matrix.json"
    before = plan.read_bytes()
    for name in ("matrix.json", "matrix.html", "run.html", "journal.jsonl"):
        done = orchard("report", "m", "-o", f"m/{name}")
        assert done.returncode == Exit.USAGE, name
        assert "could overwrite a run or a matrix" in done.stderr
    assert plan.read_bytes() == before
    assert orchard("report", "m", "--html", "-o", "x.json").returncode == Exit.USAGE
    (tmp_path / "link").symlink_to("/dev/null")
    assert orchard("report", "m", "-o", "link").returncode == Exit.OK
    assert (tmp_path / "link").is_symlink()


def test_a_threshold_that_is_no_number_is_refused(orchard: Orchard) -> None:
    for args in (("report", "m"), ("runs", "diff", "a", "b")):
        done = orchard(*args, "--threshold", "nan")
        assert done.returncode == Exit.USAGE
        assert "is not a number" in done.stderr


def test_a_matrix_in_the_place_of_a_run_is_called_one(orchard: Orchard, tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "matrix.json").write_text("{}")
    done = orchard("runs", "diff", "m", "m")
    assert done.returncode == Exit.USAGE
    assert "m is a matrix" in done.stderr
    assert "m/cells/" in done.stderr


def test_a_plan_that_the_disk_does_not_take_is_named_with_what_to_do(
    orchard: Orchard, tmp_path: Path
) -> None:
    (tmp_path / "m" / "matrix.json").mkdir(parents=True)
    done = orchard("matrix", *SMALL, "--out", "m")
    assert done.returncode == Exit.FAILED
    assert "m/matrix.json cannot be written: Is a directory" in done.stderr
    assert "go on with: orchard matrix --out m" in done.stderr
