"""A report counts everything, under both denominators, and nothing in it works as markup."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchard_core import Attribution, Outcome
from orchard_core.evals.attempts import count_attempts, is_valid
from orchard_core.evals.compare import compare
from orchard_core.evals.markdown import to_markdown
from orchard_core.evals.markdown_words import escape
from orchard_core.evals.report import Report, build_report
from orchard_core.rollout.store.run import Run, open_run
from orchard_core.rollout.store.summary import summary
from orchard_core.rollout.store.writer import RunWriter

from .making import make_config, make_planned, make_rollout

GONE: dict[str, Any] = {
    "score": None,
    "outcome": Outcome.SANDBOX_FAILED,
    "attribution": Attribution.INFRASTRUCTURE,
}
NASTY = (
    "a|b `c` <script>alert(1)</script> [x](javascript:alert(1)) \x1b[31m\u202e @all https://evil.example #1"
)


async def write_run(
    root: Path, *, tags: tuple[str, ...] = (), error: str = "SandboxGone", **config: object
) -> Run:
    """Task a: 2 of 8 passed, 2 lost to infrastructure. Task b: 1 of 8 passed, 1 ended by it, 1 missing."""
    writer = await RunWriter.open(root, make_config(**config))
    async with writer:
        await writer.plan([make_planned(task, n, tags=(task, *tags)) for task in "ab" for n in range(8)])
        for n in range(8):
            lost = n >= 6
            score = None if lost else float(n < 2)
            fields: dict[str, Any] = {**GONE, "error": error} if lost else {"score": score}
            await writer.finish(make_rollout("a", n, turns=2, **fields))
        for n in range(7):
            killed = n == 6
            fields = (
                {**GONE, "attribution": Attribution.AGENT, "error": error}
                if killed
                else {"score": float(n < 1)}
            )
            await writer.finish(make_rollout("b", n, turns=4, **fields))
    return open_run(root)


async def test_both_denominators_are_counted(tmp_path: Path) -> None:
    report = build_report(await write_run(tmp_path))
    total = report.total
    assert (total.tasks, total.planned, total.finished, total.valid, total.scored, total.passed) == (
        2,
        16,
        15,
        13,
        12,
        3,
    )
    assert total.pass_at_1.planned is not None
    assert total.pass_at_1.valid is not None
    assert total.pass_at_1.planned.value == pytest.approx((2 / 8 + 1 / 8) / 2)
    assert total.pass_at_1.valid.value == pytest.approx((2 / 6 + 1 / 7) / 2)
    assert report.missing == 1


async def test_figures_that_need_more_attempts_than_are_valid_are_left_out(tmp_path: Path) -> None:
    report = build_report(await write_run(tmp_path))
    by_k = {item.k: item.rate for item in report.total.pass_at}
    assert sorted(by_k) == [2, 4, 8]
    assert by_k[8].planned is not None
    assert by_k[8].planned.value == 1.0
    assert by_k[8].valid is None


async def test_what_the_agent_did_to_itself_counts_against_it(tmp_path: Path) -> None:
    run = await write_run(tmp_path)
    entries = {(entry.task, entry.attempt): entry for entry in run.finished()}
    assert not is_valid(entries["a", 6])
    assert is_valid(entries["b", 6])
    counts = count_attempts(run.planned(), run.finished(), threshold=1.0)
    assert [(item.valid, item.passed) for item in counts] == [(6, 2), (7, 1)]


async def test_an_artifact_past_its_cap_is_a_failure_of_the_agent_and_not_left_out(tmp_path: Path) -> None:
    async with await RunWriter.open(tmp_path, make_config()) as writer:
        await writer.plan([make_planned("a", n) for n in range(2)])
        await writer.finish(make_rollout("a", 0))
        await writer.finish(
            make_rollout("a", 1, score=None, outcome=Outcome.VERIFIER_FAILED, error="BlobTooLarge")
        )
    report = build_report(open_run(tmp_path))
    assert (report.total.valid, report.total.scored, report.total.passed) == (2, 1, 1)
    assert report.total.pass_at_1.valid is not None
    assert report.total.pass_at_1.valid.value == 1 / 2
    [unscored] = report.unscored
    assert (unscored.attribution, unscored.regradable) == (Attribution.AGENT, False)


async def test_what_repeated_and_stopped_tries_used_up_is_part_of_what_was_spent(tmp_path: Path) -> None:
    async with await RunWriter.open(tmp_path, make_config()) as writer:
        await writer.plan([make_planned("a", 0), make_planned("b", 0)])
        await writer.retried(make_rollout("a", turns=2, cost_usd=0.5, error="gone"))
        await writer.finish(make_rollout("a", turns=3, cost_usd=1.0))
        await writer.cancelled("b-0", make_rollout("b", turns=4, cost_usd=0.25))
    report = build_report(open_run(tmp_path))
    spending = report.total.spending
    assert (spending.calls, spending.usage.output, spending.cost_usd) == (3, 9, 1.0)
    assert (spending.spent.calls, spending.spent.usage.output, spending.spent.cost_usd) == (9, 27, 1.75)
    text = to_markdown([report])
    assert "9 model calls" in text
    assert "without repeated and stopped tries: 3 model calls" in text


async def test_outcomes_errors_spending_and_the_unscored_are_listed(tmp_path: Path) -> None:
    report = build_report(await write_run(tmp_path))
    ends = {(item.outcome, item.attribution): item.count for item in report.outcomes}
    assert ends == {
        (Outcome.COMPLETED, Attribution.AGENT): 12,
        (Outcome.SANDBOX_FAILED, Attribution.INFRASTRUCTURE): 2,
        (Outcome.SANDBOX_FAILED, Attribution.AGENT): 1,
    }
    assert report.unscored_count == 3
    assert report.total.spending.turns_mean == pytest.approx((8 * 2 + 7 * 4) / 15)
    assert report.total.spending.usage.total == (8 * 2 + 7 * 4) * 13
    assert report.total.spending.cost_usd == 0.0
    assert {row.name for row in report.tags} == {"a", "b"}


async def test_an_unknown_cost_is_unknown_and_not_free(tmp_path: Path) -> None:
    async with await RunWriter.open(tmp_path, make_config()) as writer:
        await writer.plan([make_planned("a", 0)])
        await writer.finish(make_rollout("a", cost_usd=None))
    report = build_report(open_run(tmp_path))
    assert report.total.spending.cost_usd is None
    assert "cost unknown" in to_markdown([report])


async def test_json_and_markdown_carry_the_same_run(tmp_path: Path) -> None:
    report = build_report(await write_run(tmp_path))
    assert Report.model_validate(json.loads(report.model_dump_json())) == report
    text = to_markdown([report])
    assert "3/16 (3/13)" in text
    assert "18.8% [" in text
    assert "1 not finished yet" in text.lower()
    assert "clustered by task" in text


async def test_an_empty_run_can_be_reported(tmp_path: Path) -> None:
    async with await RunWriter.open(tmp_path, make_config()):
        pass
    assert "0 planned" in to_markdown([build_report(open_run(tmp_path))])


async def test_hostile_strings_do_not_work_as_markup(tmp_path: Path) -> None:
    run = await write_run(tmp_path, tags=(NASTY, "--- | ---"), taskset=NASTY)
    text = to_markdown([build_report(run)], [compare(run, run)])
    for bad in ("<script", "](", "\x1b", "\u202e", "@all", "https://", "`c`"):
        assert bad not in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    columns = {line.count("|") for line in tables}
    assert columns == {4, 6, 7, 11}


def test_ordinary_names_stay_readable() -> None:
    assert escape("workbench:16") == "workbench:16"
    assert escape("fix-a-failing-test 0.3") == "fix-a-failing-test 0.3"
    assert escape("0.1.0 (zeroclaw of the image)") == "0.1.0 (zeroclaw of the image)"
    assert escape("(it's here)") == "(it's here)"


def test_what_could_be_a_link_is_none_though_parentheses_are_plain() -> None:
    for hostile in ("a [b](c)", "see (https://x.y/z)", "[b]: (c)", "![b](c)"):
        shown = escape(hostile)
        assert not {"[", "]"} & set(shown)
        assert "://" not in shown


async def test_no_version_is_cut_short(tmp_path: Path) -> None:
    versions = {f"orchard-plugin-number-{number}": f"{number}.0" for number in range(40)}
    text = to_markdown([build_report(await write_run(tmp_path, versions=versions))])
    assert ", ".join(f"{name} {version}" for name, version in versions.items()) in text


async def test_two_runs_say_why_they_differ(tmp_path: Path) -> None:
    left = await write_run(tmp_path / "left", versions={"react": "1"}, seed=1)
    right = await write_run(tmp_path / "right", versions={"react": "2"}, seed=2)
    found = compare(left, right)
    assert {(item.field, item.left, item.right) for item in found.config} == {
        ("versions.react", "1", "2"),
        ("seed", 1, 2),
    }
    assert found.changed_tasks == ()
    text = to_markdown([], [found])
    assert "versions.react: 1 → 2" in text


async def test_changed_tasks_prompts_and_seeds_are_named(tmp_path: Path) -> None:
    for name, digest, prompt, seed, first in (("l", "d1", "p", 1, "f1"), ("r", "d2", "p", 2, "f2")):
        async with await RunWriter.open(tmp_path / name, make_config()) as writer:
            await writer.plan(
                [make_planned("a", 0, digest=digest, prompt=prompt, seed=seed), make_planned(name, 0)]
            )
            await writer.finish(make_rollout("a", prompt_digest=first))
    found = compare(open_run(tmp_path / "l"), open_run(tmp_path / "r"))
    assert (found.only_left, found.only_right) == (("l",), ("r",))
    assert (found.changed_tasks, found.changed_prompts, found.changed_seeds) == (("a",), ("a",), 1)


def test_a_rollout_and_its_line_agree() -> None:
    rollout = make_rollout("a", turns=3)
    line = summary(rollout)
    assert (line.id, line.turns, line.calls, line.usage) == (rollout.id, 3, 3, rollout.usage)
