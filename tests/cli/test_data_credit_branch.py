"""`orchard data credit --estimator branch` on a real run in real sandboxes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchard_core import open_credits, open_run, read_branches
from orchard_core.rollout.config import RunConfig
from orchard_core.testing.isolation import provider_or_skip

from .conftest import command


@pytest.fixture
async def isolated() -> None:
    provider = await provider_or_skip()
    await provider.close()


@pytest.mark.usefixtures("isolated")
def test_a_run_is_measured_after_saying_what_it_takes(tmp_path: Path) -> None:
    orchard = command(tmp_path)
    made = orchard(
        "run", "workbench:1", "--model", "noisy-oracle:0.9", "--attempts", "3", "--out", "runs/a", "--json"
    )
    assert made.returncode == 0, made.stderr
    failed = [entry for entry in open_run(tmp_path / "runs/a").finished() if entry.score == 0.0]
    assert failed
    asked = ("data", "credit", "runs/a", "--estimator", "branch", "--option", "k=2", "--max-rollouts", "4")
    told = json.loads(orchard(*asked, "--dry-run", "--json").stdout)
    assert told["unresolved"] == len(failed)
    assert 2 * len(failed) <= told["rollouts"] <= told["rollouts_at_most"] <= 4 * len(failed)
    assert not (tmp_path / "runs/a/credit").exists()
    refused = orchard(*asked)
    assert "--yes" in refused.stderr
    done = orchard(*asked, "--yes", "--json")
    assert done.returncode == 0, done.stderr
    credits_done = open_credits(tmp_path / "runs/a/credit/branch")
    assert len(credits_done) == 3
    measured = [credit for credit in credits_done if not credit.resolved]
    assert (
        sum(credit.rollouts for credit in measured)
        == json.loads(done.stdout)["rollouts"]
        <= told["rollouts_at_most"]
    )
    branches = list(read_branches(tmp_path / "runs/a/credit/branch"))
    assert {branch.rollout for branch in branches} == {entry.id for entry in failed}
    again = orchard(*asked, "--yes", "--json")
    assert again.returncode == 0, again.stderr
    assert list(read_branches(tmp_path / "runs/a/credit/branch")) == branches
    sure = ("--reuse", "branch", "--name", "sure", "--option", "rise_by=lower-bound")
    reused = orchard("data", "credit", "runs/a", *sure, "--json")
    assert reused.returncode == 0, reused.stderr
    told_anew = open_credits(tmp_path / "runs/a/credit/sure")
    assert {credit.rollout: credit.points for credit in told_anew} == {
        credit.rollout: credit.points for credit in credits_done
    }
    assert [credit.rollout for credit in told_anew if any(credit.mask)] == [
        credit.rollout for credit in told_anew if credit.resolved
    ]  # two continuations make nothing sure


CONFIG = RunConfig(
    taskset="workbench:1", harness="react", harness_version="1", model="oracle", sandbox="local"
)


def test_options_of_branch_are_checked_before_anything_runs(tmp_path: Path) -> None:
    orchard = command(tmp_path)
    asked = ("data", "credit", "runs/none", "--estimator", "branch")
    for more, said in (
        (("--option", "kk=2"), "did you mean 'k'"),
        (("--option", "k=8", "--max-rollouts", "2"), "max_rollouts 2 is not enough"),
        (("--judge", "oracle"), "a judge belongs to --estimator judge"),
    ):
        (tmp_path / "runs/none").mkdir(parents=True, exist_ok=True)
        (tmp_path / "runs/none/run.json").write_text(CONFIG.model_dump_json())
        refused = orchard(*asked, *more)
        assert refused.returncode != 0
        assert said in refused.stderr
