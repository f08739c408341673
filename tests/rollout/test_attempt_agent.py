"""How the agent's run ends: limits, harnesses that break, models that cannot be had."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace

import pytest

from orchard_core import (
    Attribution,
    HarnessError,
    HarnessResult,
    Limits,
    ModelEndpoint,
    ModelRejected,
    ModelUnavailable,
    Outcome,
    Sandbox,
    StopReason,
    Task,
)
from orchard_core.rollout.parts import RolloutParts
from orchard_core.testing import (
    FakeHarness,
    FakeModel,
    FakeReply,
)

from .attempts import run, run_body, summary
from .harnesses import answer, write_then_sleep


async def test_an_agent_that_runs_out_of_time_is_still_verified_and_flagged(parts: RolloutParts) -> None:
    rollout = await run_body(parts, write_then_sleep, agent_timeout_s=1.0)
    assert summary(rollout) == (Outcome.TIMED_OUT, Attribution.AGENT)
    assert rollout.score == 1.0
    assert rollout.error is not None
    assert rollout.error.kind == "DeadlineExceeded"
    assert rollout.error.limit_s == 1.0
    assert rollout.error.elapsed_s is not None
    assert 1.0 <= rollout.error.elapsed_s < 10


async def test_a_run_may_give_less_time_than_the_task_does(parts: RolloutParts) -> None:
    limited = replace(parts, limits=Limits(wall_clock_s=0.5))
    rollout = await run_body(limited, write_then_sleep, agent_timeout_s=60.0)
    assert rollout.error is not None
    assert rollout.error.limit_s == 0.5


async def test_a_harness_that_ignores_its_cancellation_does_not_hold_the_rollout(parts: RolloutParts) -> None:
    async def stubborn(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        await answer(model)
        for _ in range(12):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.1)

    rollout = await run_body(parts, stubborn, agent_timeout_s=0.3)
    assert rollout.outcome is Outcome.TIMED_OUT
    assert rollout.score == 0.0


async def test_an_inner_time_out_keeps_its_own_class_and_message(parts: RolloutParts) -> None:
    async def inner(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        async with asyncio.timeout(0.05):
            await asyncio.sleep(60)

    rollout = await run_body(parts, inner, agent_timeout_s=1800)
    assert summary(rollout) == (Outcome.HARNESS_FAILED, Attribution.HARNESS)
    assert rollout.error is not None
    assert rollout.error.kind == "TimeoutError"
    assert rollout.error.elapsed_s is not None
    assert rollout.error.elapsed_s < 60
    assert "1800" not in rollout.error.message


async def test_a_turn_limit_truncates_and_is_verified(parts: RolloutParts) -> None:
    rollout = await run(replace(parts, limits=Limits(turns=1), harness=FakeHarness()))
    assert summary(rollout) == (Outcome.TRUNCATED, Attribution.AGENT)
    assert rollout.score == 1.0


async def test_a_budget_that_ran_out_is_named_whatever_the_harness_says_of_it(parts: RolloutParts) -> None:
    async def greedy(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> HarnessResult:
        await answer(model)
        with contextlib.suppress(ModelRejected):
            await answer(model)
        return HarnessResult(stop=StopReason.ANSWERED, answer="I could not go on", turns=1)

    rollout = await run_body(replace(parts, limits=Limits(calls=1)), greedy)
    assert summary(rollout) == (Outcome.TRUNCATED, Attribution.AGENT)
    assert rollout.error is not None
    assert rollout.error.kind == "BudgetExceeded"
    assert rollout.score == 0.0


async def test_a_crashing_harness_is_the_harness_doing_and_is_not_scored(parts: RolloutParts) -> None:
    async def crash(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        raise ZeroDivisionError("half way")

    rollout = await run_body(parts, crash)
    assert summary(rollout) == (Outcome.HARNESS_FAILED, Attribution.HARNESS)
    assert rollout.error is not None
    assert rollout.error.kind == "ZeroDivisionError"
    assert "half way" in rollout.error.message
    assert rollout.reward is None


async def test_a_harness_that_exits_the_program_ends_only_its_own_rollout(parts: RolloutParts) -> None:
    async def leaving(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        raise SystemExit(3)

    rollout = await run_body(parts, leaving)
    assert summary(rollout) == (Outcome.HARNESS_FAILED, Attribution.HARNESS)
    assert rollout.error is not None
    assert "sys.exit(3)" in rollout.error.message


async def test_errors_in_a_group_are_named_by_what_is_inside(parts: RolloutParts) -> None:
    async def grouped(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        raise ExceptionGroup("tasks failed", [ValueError("noise"), ModelUnavailable("no server")])

    rollout = await run_body(parts, grouped)
    assert summary(rollout) == (Outcome.MODEL_FAILED, Attribution.MODEL)


async def test_an_error_that_cannot_be_printed_is_recorded_all_the_same(parts: RolloutParts) -> None:
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise ValueError("no")

    async def odd(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        raise Unprintable

    rollout = await run_body(parts, odd)
    assert rollout.error is not None
    assert rollout.error.kind == "Unprintable"


async def test_a_harness_that_cancels_itself_does_not_pass_for_the_user(parts: RolloutParts) -> None:
    async def suicidal(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        raise asyncio.CancelledError

    rollout = await run_body(parts, suicidal)
    assert summary(rollout) == (Outcome.HARNESS_FAILED, Attribution.HARNESS)


@pytest.mark.parametrize("wraps", [True, False])
async def test_a_model_that_cannot_be_had_is_the_models_doing(parts: RolloutParts, wraps: bool) -> None:
    async def asking(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        try:
            await answer(model)
        except Exception as error:
            if wraps:
                raise HarnessError(f"the client said {error}") from error
            raise

    dead = FakeModel([FakeReply(error=ModelUnavailable("connection refused"))])
    rollout = await run_body(replace(parts, model=dead), asking)
    assert summary(rollout) == (Outcome.MODEL_FAILED, Attribution.MODEL)
    assert rollout.error is not None
    assert "connection refused" in rollout.error.message
    assert rollout.reward is None
