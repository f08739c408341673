"""`orchard data credit`, the real command: what it says before it spends, and what it never does twice."""

from __future__ import annotations

import json
import os
import pty
import random
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchard_core import open_credits
from orchard_core.cli.exits import Exit
from orchard_core.datasets.credit.judge.template import template
from orchard_core.datasets.store.writer import DatasetWriter
from tests.cli.conftest import ARGV, Orchard, command, environment

from .making import make_rollout, make_row, steps, write_run
from .server import JudgeServer

KEY = {"OPENAI_API_KEY": "sk-test"}
PRICE = ("--judge-option", "price.input=2", "--judge-option", "price.output=10")
EACH = 0.003
"""Dollars of one answer of the server: 1,000 tokens in, 100 out."""


@pytest.fixture
def orchard(tmp_path: Path) -> Orchard:
    return command(tmp_path)


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as running:
        yield running


@pytest.fixture
async def run(tmp_path: Path) -> Path:
    """Three unresolved rollouts, one resolved, one without a score."""
    rollouts = [make_rollout(f"t{n}", log=f"{n} failed") for n in range(3)]
    passed, lost = make_rollout("passed", score=1.0), make_rollout("lost", score=None)
    return await write_run(tmp_path / "r", [*rollouts, passed, lost])


def asking(server: JudgeServer, *more: str) -> tuple[str, ...]:
    judge = ("--judge", "openai:judge", "--base-url", server.url, *PRICE, "--plain")
    return ("data", "credit", "r", *judge, *more)


async def test_credit_is_assigned_and_summed_up(run: Path, orchard: Orchard, server: JudgeServer) -> None:
    done = orchard(*asking(server, "--yes"), **KEY)
    assert done.returncode == Exit.OK, done.stderr
    assert "rollouts   1 resolved, 3 unresolved, 1 left out (1 no score (completed))" in done.stderr
    assert "to do      4, of which 3 are estimated; 0 were done before" in done.stderr
    assert "cost       about $0.0" in done.stderr
    assert "done 4/4  annotated 3  kept 25% of answers" in done.stderr
    assert done.stdout.splitlines() == [
        "resolved   1, trained on whole",
        "annotated  3",
        "left out   1, without a credit",
        "segments   3, median length 1 answers",
        "kept       3 of 12 answers (25%) of the annotated",
        "cost       $0.0090",
        "credits    r/credit/judge",
        "next       orchard data mix, with `credit: judge` at this source",
    ]
    assert {credit.mask for credit in open_credits(run / "credit" / "judge") if not credit.resolved} == {
        (1, 0, 0, 0)
    }
    assert "\x1b" not in done.stdout + done.stderr
    assert "sk-test" not in (run / "credit" / "judge" / "credit.json").read_text()


async def test_the_same_command_again_asks_nobody(run: Path, orchard: Orchard, server: JudgeServer) -> None:
    orchard(*asking(server, "--yes"), **KEY)
    again = orchard(*asking(server), **KEY)  # nothing to spend, so no question
    assert again.returncode == Exit.OK, again.stderr
    assert "to do      0, of which 0 are estimated; 4 were done before" in again.stderr
    assert sorted(server.asked.values()) == [1, 1, 1]


async def test_json_is_all_that_goes_to_stdout(run: Path, orchard: Orchard, server: JudgeServer) -> None:
    dry = json.loads(orchard(*asking(server, "--dry-run", "--json"), **KEY).stdout)
    assert (dry["unresolved"], dry["calls"], dry["left_out"]) == (3, 3, {"no score (completed)": 1})
    assert server.asked.total() == 0
    assert not (run / "credit").exists()
    told = json.loads(orchard(*asking(server, "--yes", "--json"), **KEY).stdout)
    assert (told["annotated"], told["kept"], told["turns"], told["cost_usd"]) == (3, 3, 12, 3 * EACH)
    assert told["directories"] == ["r/credit/judge"]


async def test_nothing_is_spent_without_a_yes_where_nobody_can_be_asked(
    run: Path, orchard: Orchard, server: JudgeServer
) -> None:
    done = orchard(*asking(server), **KEY)
    assert done.returncode == Exit.USAGE
    assert "cost       about $0.0" in done.stderr
    assert "--yes, or --max-cost" in done.stderr
    assert server.asked.total() == 0


async def test_it_does_not_start_above_the_bound_of_cost(
    run: Path, orchard: Orchard, server: JudgeServer
) -> None:
    done = orchard(*asking(server, "--max-cost", "0.001"), **KEY)
    assert done.returncode == Exit.USAGE
    assert "--max-cost is $0.00" in done.stderr
    assert server.asked.total() == 0
    assert orchard(*asking(server, "--max-cost", "1"), **KEY).returncode == Exit.OK
    assert server.asked.total() == 3


async def test_an_unknown_price_is_said_and_not_taken_for_nothing(
    run: Path, orchard: Orchard, server: JudgeServer
) -> None:
    unpriced = ("data", "credit", "r", "--judge", "openai:judge", "--base-url", server.url)
    done = orchard(*unpriced, "--max-cost", "1", **KEY)
    assert done.returncode == Exit.USAGE
    assert "the price is unknown" in done.stderr
    assert "price.input=" in done.stderr
    assert orchard(*unpriced, **KEY).returncode == Exit.USAGE
    assert server.asked.total() == 0
    said = orchard(*unpriced, "--yes", **KEY)
    assert "cost       unknown" in said.stderr
    assert "cost       cost unknown" in said.stdout


@pytest.mark.parametrize(
    ("typed", "asked", "code"), [("n\n", 0, Exit.USAGE), ("\x04", 0, Exit.INTERRUPTED), ("y\n", 3, Exit.OK)]
)
async def test_on_a_terminal_it_asks_before_it_spends(
    run: Path, tmp_path: Path, server: JudgeServer, typed: str, asked: int, code: Exit
) -> None:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*ARGV, *asking(server)], cwd=tmp_path, env=environment(**KEY, TERM="dumb"),
        stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    seen = _until(master, "start? [y/N]")
    assert "cost       about $0.0" in seen
    assert server.asked.total() == 0
    os.write(master, typed.encode())
    rest = _until(master, None)
    assert process.wait(60) == code, rest
    assert server.asked.total() == asked
    assert ("nothing was started" in rest) == (not asked)


def _until(master: int, words: str | None) -> str:
    """What a terminal shows until it shows these words, or until it closes."""
    seen = b""
    end = time.monotonic() + 60
    while words is None or words.encode() not in seen:
        assert time.monotonic() < end, seen
        if select.select([master], [], [], 1.0)[0]:
            try:
                seen += os.read(master, 65536)
            except OSError:
                break
    return seen.decode()


async def test_settings_that_changed_are_refused_and_another_name_keeps_both(
    run: Path, orchard: Orchard, server: JudgeServer
) -> None:
    orchard(*asking(server, "--yes"), **KEY)
    other = orchard(*asking(server, "--yes", "--epsilon", "0.5"), **KEY)
    assert other.returncode == Exit.USAGE
    assert "epsilon is 0.05 there, 0.5 is asked for" in other.stderr
    assert server.asked.total() == 3
    named = orchard(*asking(server, "--yes", "--epsilon", "0.5", "--name", "strict"), **KEY)
    assert named.returncode == Exit.OK, named.stderr
    assert "with `credit: strict`" in named.stdout
    assert sorted(path.name for path in (run / "credit").iterdir()) == ["judge", "strict"]


async def test_what_cannot_be_used_is_counted_and_fails_the_command(run: Path, orchard: Orchard) -> None:
    with JudgeServer(answer="Sure! Values: 0.5") as server:
        done = orchard(*asking(server, "--yes"), **KEY)
        assert done.returncode == Exit.UNSOUND
        assert "failed     3, trained on not at all" in done.stdout
        assert "3 x the judge's answer cannot be used: it is not JSON" in done.stdout
        assert sorted(server.asked.values()) == [2, 2, 2]  # each was sent back once
        orchard(*asking(server, "--yes"), **KEY)
        assert server.asked.total() == 6  # an answer was paid for; it is not asked again by itself
        orchard(*asking(server, "--yes", "--retry-failed"), **KEY)
        assert server.asked.total() == 12


async def test_a_wrong_key_is_told_and_the_same_command_tries_again(run: Path, orchard: Orchard) -> None:
    with JudgeServer(status=401) as refusing:
        done = orchard(*asking(refusing, "--yes"), **KEY)
    assert done.returncode == Exit.UNSOUND
    assert "the judge could not be had" in done.stdout
    assert "sk-test" not in done.stdout + done.stderr
    assert all(credit.again for credit in open_credits(run / "credit" / "judge") if credit.error)


async def test_terminal_codes_in_a_judges_answer_are_not_shown(run: Path, orchard: Orchard) -> None:
    with JudgeServer(answer='[{"turn": 0, "value": 0.5, "reason": "\\u001b[31m"}, {"\x1b[2J": 1}]') as server:
        done = orchard(*asking(server, "--yes"), **KEY)
    assert "\x1b" not in done.stdout + done.stderr


async def test_ctrl_c_keeps_what_is_done(run: Path, tmp_path: Path) -> None:
    with JudgeServer(pause_s=0.3) as server:
        process = subprocess.Popen(
            [*ARGV, *asking(server, "--yes", "--concurrency", "1")], cwd=tmp_path, env=environment(**KEY),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        _wait_for_lines(run, 1)
        process.send_signal(signal.SIGINT)
        shown, said = process.communicate(timeout=60)
        assert process.returncode == Exit.INTERRUPTED
        assert "the same command goes on" in said
        assert "annotated" in shown
        assert "orchard data mix" not in shown, "what is next is the same command"
        kept = {credit.rollout: credit for credit in open_credits(run / "credit" / "judge")}
        assert 1 <= len(kept) < 4
        assert command(tmp_path)(*asking(server, "--yes"), **KEY).returncode == Exit.OK
    after = open_credits(run / "credit" / "judge").by_rollout
    assert len(after) == 4
    assert all(after[name] == credit for name, credit in kept.items())


@pytest.mark.slow
async def test_a_command_killed_again_and_again_judges_nothing_twice_that_was_kept(tmp_path: Path) -> None:
    run = await write_run(tmp_path / "r", [make_rollout(f"t{n}", log=f"{n} failed") for n in range(16)])
    draw = random.Random(3)
    with JudgeServer(pause_s=0.05) as server:
        for _ in range(5):
            before = _kept(run)
            asked = dict(server.asked)
            process = subprocess.Popen(
                [*ARGV, *asking(server, "--yes", "--concurrency", "2")], cwd=tmp_path,
                env=environment(**KEY), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            _wait_for_lines(run, min(15, len(before) + draw.randint(1, 3)))
            process.kill()
            process.wait()
            assert all(server.asked[prompt] == asked[prompt] for prompt in before)
        done = command(tmp_path)(*asking(server, "--yes"), **KEY)
    assert done.returncode == Exit.OK, done.stderr
    assert len(_kept(run)) == len(open_credits(run / "credit" / "judge")) == 16
    assert server.asked.total() <= 16 + 5 * 2  # what was in flight when it was killed


def _kept(run: Path) -> set[str]:
    """Hashes of the prompts whose answers are kept."""
    if not (run / "credit" / "judge" / "credit.json").exists():
        return set()
    return {str(credit.settings["prompt_sha256"]) for credit in open_credits(run / "credit" / "judge")}


def _wait_for_lines(run: Path, count: int) -> None:
    lines = run / "credit" / "judge" / "credits.jsonl"
    end = time.monotonic() + 60
    while not lines.exists() or lines.read_bytes().count(b"\n") < count:
        assert time.monotonic() < end
        time.sleep(0.01)


async def test_the_prompt_is_shown_with_its_number_and_hash(orchard: Orchard) -> None:
    done = orchard("data", "credit", "--show-prompt")
    assert done.returncode == Exit.OK, done.stderr
    assert done.stdout == template(1).text
    assert template(1).sha256 in done.stderr
    told = json.loads(orchard("data", "credit", "--show-prompt", "--json").stdout)
    assert (told["version"], told["sha256"]) == (1, template(1).sha256)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "no run was named"),
        (("r",), "no judge was named"),
        (("nowhere", "--judge", "oracle"), "there is nothing at nowhere"),
        (("r", "--judge", "oracel"), "oracle"),
        (("r", "--judge", "oracle", "--merge", "near:2"), "none, gap:N or context:N"),
        (("r", "--judge", "oracle", "--interpolation", "cubic"), "linear"),
        (("r", "--judge", "oracle", "--epsilon", "0"), "epsilon"),
        (("r", "--judge", "oracle", "--estimator", "guess"), "judge, branch"),
        (("r", "--judge", "oracle", "--name", "../x"), "cannot name a directory"),
        (("r", "--judge", "oracle", "--out", "elsewhere"), "leave --out away"),
        (("r", "--judge", "oracle", "--template", "9"), "no judge's prompt 9"),
        (("r", "--judge", "openai:m", "--judge-option", "api_key=sk-1"), "environment"),
        (("r", "--judge", "oracle", "--option", "k=3"), "belong to --estimator branch"),
        (("r", "--judge", "oracle", "--max-rollouts", "5"), "belong to --estimator branch"),
    ],
)
async def test_what_cannot_be_is_refused_before_anything_starts(
    run: Path, orchard: Orchard, args: tuple[str, ...], said: str
) -> None:
    done = orchard("data", "credit", *args)
    assert done.returncode == Exit.USAGE, done.stderr
    assert said in done.stderr
    assert "hint:" in done.stderr
    assert not (run / "credit").exists()


async def test_a_run_without_a_scored_rollout_is_refused(tmp_path: Path, orchard: Orchard) -> None:
    await write_run(tmp_path / "r", [make_rollout("lost", score=None)])
    done = orchard("data", "credit", "r", "--judge", "oracle")
    assert done.returncode == Exit.USAGE
    assert "there is nothing to be credited" in done.stderr


async def test_self_asks_the_model_that_acted_with_the_options_of_its_run(
    tmp_path: Path, orchard: Orchard, server: JudgeServer
) -> None:
    recipe = {
        "model": "openai:actor",
        "model_options": {"base_url": server.url, "price": {"input": 0, "output": 0}},
    }
    await write_run(tmp_path / "r", [make_rollout("t")], model="openai:actor", options={"recipe": recipe})
    done = orchard("data", "credit", "r", "--judge", "self", "--param", "temperature=0", **KEY)
    assert done.returncode == Exit.OK, done.stderr
    ((body),) = server.bodies
    assert (body["model"], body["temperature"]) == ("actor", 0)


async def test_rows_of_a_dataset_are_judged_into_a_directory_of_their_own(
    tmp_path: Path, orchard: Orchard
) -> None:
    with DatasetWriter(tmp_path / "d") as writer:
        writer.write(make_row(make_rollout("t")))
        writer.finish()
    (tmp_path / "judge.jsonl").write_text(json.dumps({"text": steps((0, 0.1), (4, 0.9))}) + "\n")
    scripted = ("--judge", "scripted:judge.jsonl", "--end", "estimate", "--out", "c")
    done = orchard("data", "credit", "d", *scripted)
    assert done.returncode == Exit.OK, done.stderr
    assert "with `credit: c`" in done.stdout
    assert open_credits(tmp_path / "c").by_rollout["t"].mask == (1, 1, 1, 1)


async def test_a_threshold_that_is_no_number_is_refused(run: Path, orchard: Orchard) -> None:
    """Every score would be below it: what passed would be judged."""
    refused = orchard("data", "credit", str(run), "--judge", "scripted:judge.jsonl", "--threshold", "nan")
    assert refused.returncode == Exit.USAGE
    assert "--threshold is no number" in refused.stderr


@pytest.mark.parametrize(
    ("estimator", "more", "hint"),
    [
        ("judge", ("--judge", "openai:judge"), "--judge-option price.input="),
        ("branch", (), "--max-rollouts bounds what is measured"),
    ],
)
async def test_how_a_price_becomes_known_is_told_of_the_estimator_that_was_asked_for(
    tmp_path: Path, orchard: Orchard, estimator: str, more: tuple[str, ...], hint: str
) -> None:
    unpriced = make_rollout("t")
    calls = tuple(call.model_copy(update={"cost_usd": None}) for call in unpriced.trajectory.calls)
    trajectory = unpriced.trajectory.model_copy(update={"calls": calls})
    parts = {"taskset": "workbench:1", "model": "oracle", "sandbox": "local"}
    await write_run(tmp_path / "r", [unpriced.model_copy(update={"trajectory": trajectory})], **parts)
    refused = orchard("data", "credit", "r", "--estimator", estimator, *more, "--max-cost", "1", **KEY)
    assert refused.returncode == Exit.USAGE
    assert "the price is unknown" in refused.stderr
    assert hint in refused.stderr


@pytest.mark.slow
async def test_every_cell_of_a_matrix_gets_its_credits(tmp_path: Path, orchard: Orchard) -> None:
    noisy = ("--model", "noisy-oracle", "--model", "oracle", "--taskset", "workbench:2", "--attempts", "2")
    made = orchard("matrix", "--harness", "react", *noisy, "--out", "m", "--plain")
    assert made.returncode == Exit.OK, made.stderr
    (tmp_path / "judge.jsonl").write_text(json.dumps({"text": steps((0, 0.1), (1, 0.9))}) + "\n")
    done = orchard("data", "credit", "m", "--judge", "scripted:judge.jsonl", "--json")
    assert done.returncode == Exit.OK, done.stderr
    told = json.loads(done.stdout)
    assert told["resolved"] + told["annotated"] == 8
    assert len(told["directories"]) == 2
    assert sum(len(open_credits(tmp_path / place)) for place in told["directories"]) == 8
