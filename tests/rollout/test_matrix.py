"""A matrix runs every cell that can be run, adds without repeating, and stops at its bounds."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest

from orchard_core import (
    ConfigError,
    HarnessError,
    ModelEndpoint,
    RunLocked,
    RunNotFound,
    Sandbox,
    Stop,
    Task,
    ToolUse,
    Usage,
)
from orchard_core.gateway.server import Gateway
from orchard_core.rollout.matrix.caps import MatrixCaps
from orchard_core.rollout.matrix.front import run_matrix
from orchard_core.rollout.matrix.key import CellKey
from orchard_core.rollout.matrix.plan import MatrixShared, cell_directory, read_plan
from orchard_core.rollout.matrix.run import Item, MatrixOptions
from orchard_core.rollout.matrix.watching import NobodyWatches
from orchard_core.rollout.retry import RetryPolicy
from orchard_core.rollout.store.run import open_run
from orchard_core.testing import FakeModel, FakeProvider, FakeReply, FakeTaskSet

from .harnesses import Acting, Body, solve

USAGE = Usage(input=10, output=5)
Matrices = Callable[..., AsyncGenerator[Item, None]]


class Named(Acting):
    """A harness with a name of its own."""

    def __init__(self, name: str, body: Body = solve, *, tools: ToolUse = ToolUse.NATIVE) -> None:
        super().__init__(body, tools=tools)
        self.name = name


class Watching(NobodyWatches):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.refusals: dict[str, str] = {}
        self.reached: list[str] = []

    def refused(self, key: CellKey, reason: str) -> None:
        self.refusals[key.harness] = reason

    def capped(self, reason: str) -> None:
        self.reached.append(reason)


@pytest.fixture
def matrices(gateway: Gateway, provider: FakeProvider, tmp_path: Path) -> Matrices:
    """run_matrix with fakes, into one directory."""

    def start(**fields: Any) -> AsyncGenerator[Item, None]:
        defaults: dict[str, Any] = {
            "harnesses": [Named("a"), Named("b")],
            "models": [FakeModel()],
            "tasksets": [FakeTaskSet.of(3)],
            "provider": provider,
            "gateway": gateway,
            "out": tmp_path / "m",
        }
        return run_matrix(**(defaults | fields))

    return start


async def collected(items: AsyncGenerator[Item, None]) -> list[Item]:
    return [item async for item in items]


def by_cell(items: list[Item]) -> dict[tuple[str, str], int]:
    return dict(Counter((key.harness, key.model) for key, _ in items))


async def test_each_combination_is_a_run_directory_of_its_own(matrices: Matrices, tmp_path: Path) -> None:
    models = [FakeModel(name="m1"), FakeModel(name="m2")]
    items = await collected(matrices(models=models, shared=MatrixShared(attempts=2)))
    assert by_cell(items) == {(harness, model): 6 for harness in "ab" for model in ("m1", "m2")}
    for key, rollout in items:
        assert open_run(cell_directory(tmp_path / "m", key)).rollout(rollout.id) == rollout
    assert [cell.key.harness for cell in read_plan(tmp_path / "m").cells] == ["a", "b", "a", "b"]


async def test_running_again_repeats_nothing_and_adds_what_is_new(matrices: Matrices) -> None:
    assert by_cell(await collected(matrices())) == {("a", "fake"): 3, ("b", "fake"): 3}
    assert await collected(matrices()) == []
    three = [Named("a"), Named("b"), Named("c")]
    assert by_cell(await collected(matrices(harnesses=three))) == {("c", "fake"): 3}
    more = await collected(matrices(harnesses=three, shared=MatrixShared(attempts=2)))
    assert by_cell(more) == {(name, "fake"): 3 for name in "abc"}
    assert {rollout.attempt for _, rollout in more} == {1}


async def test_an_option_that_would_change_a_rollout_is_refused_with_the_difference(
    matrices: Matrices,
) -> None:
    await collected(matrices())
    with pytest.raises(ConfigError, match="seed: 0 then, 1 now"):
        await collected(matrices(shared=MatrixShared(seed=1)))
    await collected(matrices(shared=MatrixShared(attempts=2)))
    with pytest.raises(ConfigError, match="holds 2 attempts at each task, and 1 are asked for"):
        await collected(matrices())


async def test_a_cell_that_cannot_be_run_is_named_and_the_others_run(
    matrices: Matrices, tmp_path: Path
) -> None:
    watching = Watching()
    items = await collected(matrices(harnesses=[Named("a"), "cli:nosuch"], watcher=watching))
    assert by_cell(items) == {("a", "fake"): 3}
    assert "there is no CLI 'nosuch'" in watching.refusals["cli:nosuch"]
    assert {cell.key.harness: bool(cell.refused) for cell in read_plan(tmp_path / "m").cells} == {
        "a": False,
        "cli:nosuch": True,
    }


async def test_a_mistyped_name_is_forgotten_once_it_is_not_named_any_more(
    matrices: Matrices, tmp_path: Path
) -> None:
    await collected(matrices(harnesses=[Named("a"), "cli:nosuch"]))
    await collected(matrices(harnesses=[Named("a")]))
    assert [cell.key.harness for cell in read_plan(tmp_path / "m").cells] == ["a"]


async def test_strict_runs_nothing_when_one_cell_cannot_be_run(matrices: Matrices, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nosuch"):
        await collected(matrices(harnesses=[Named("a"), "cli:nosuch"], options=MatrixOptions(strict=True)))
    for cell in read_plan(tmp_path / "m").cells:
        assert not list(cell_directory(tmp_path / "m", cell.key).glob("shards/*"))


async def test_a_model_that_cannot_be_served_ends_its_cell_only(matrices: Matrices) -> None:
    class Unservable(FakeModel):
        def upstream(self, context: Any) -> Any:
            raise ConfigError("no key", hint="export KEY")

    class ByModel(Watching):
        def refused(self, key: CellKey, reason: str) -> None:
            self.refusals[key.model] = reason

    watching = ByModel()
    models = [Unservable(name="locked"), FakeModel(name="open")]
    items = await collected(matrices(harnesses=[Named("a")], models=models, watcher=watching))
    assert by_cell(items) == {("a", "open"): 3}
    assert watching.refusals == {"locked": "no key; export KEY"}


async def test_the_tokens_of_all_cells_are_bounded_and_a_higher_bound_goes_on(matrices: Matrices) -> None:
    watching = Watching()
    one_call = 1 + USAGE.total  # a cap of one call's tokens and one more is reached by the second call

    def start(tokens: int) -> AsyncGenerator[Item, None]:
        caps = MatrixCaps(tokens=tokens)
        options = MatrixOptions(concurrency=1, caps=caps)
        return matrices(models=[FakeModel(otherwise=FakeReply(text="done", usage=USAGE))],
                        options=options, watcher=watching)  # fmt: skip

    first = [rollout for _, rollout in await collected(start(one_call)) if rollout.score is not None]
    assert len(first) == 1
    assert watching.reached == [f"{2 * USAGE.total} tokens of {one_call} are used up"]
    assert await collected(start(one_call)) == []
    rest = [rollout for _, rollout in await collected(start(100 * one_call)) if rollout.score is not None]
    assert len(rest) == 5
    assert len(watching.reached) == 2


async def test_the_time_of_one_start_is_bounded(matrices: Matrices) -> None:
    watching = Watching()
    items = await collected(matrices(options=MatrixOptions(caps=MatrixCaps(time_s=0.0)), watcher=watching))
    assert [rollout for _, rollout in items if rollout.score is not None] == []
    assert watching.reached == ["0 seconds are over"]


async def test_only_so_many_run_at_once_overall_and_under_one_harness(matrices: Matrices) -> None:
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()

    def counting(name: str) -> Named:
        async def body(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
            running.update((name, "all"))
            most.update({key: max(0, running[key] - most[key]) for key in (name, "all")})
            await solve(task, sandbox, model)
            running.subtract((name, "all"))

        return Named(name, body)

    options = MatrixOptions(concurrency=4, harness_concurrency={"b": 1})
    items = await collected(
        matrices(
            harnesses=[counting("a"), counting("b")],
            tasksets=[FakeTaskSet.of(8)],
            options=options,
        )
    )
    assert len(items) == 16
    assert most["b"] == 1
    assert 2 <= most["all"] <= 4


async def test_what_the_harness_broke_is_run_again_only_when_asked_for(matrices: Matrices) -> None:
    calls: Counter[str] = Counter()

    async def breaks_once(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        calls[task.id] += 1
        if calls[task.id] == 1:
            raise HarnessError("broke")
        await solve(task, sandbox, model)

    harnesses = [Named("frail", breaks_once)]
    first = await collected(matrices(harnesses=harnesses))
    assert [rollout.score for _, rollout in first] == [None] * 3
    assert await collected(matrices(harnesses=harnesses)) == []
    asked = MatrixOptions(retry=RetryPolicy(harness=1, backoff_s=0.01))
    again = await collected(matrices(harnesses=harnesses, options=asked))
    assert [rollout.score for _, rollout in again] == [1.0] * 3
    assert calls == {f"write-{number}": 2 for number in range(3)}


async def test_a_cell_whose_rollouts_all_fail_alike_ends_early_and_the_others_run(matrices: Matrices) -> None:
    async def breaks(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        raise HarnessError("no such program")

    watching = Watching()
    items = await collected(
        matrices(
            harnesses=[Named("frail", breaks), Named("a")], tasksets=[FakeTaskSet.of(20)], watcher=watching,
            options=MatrixOptions(concurrency=1),
        )
    )  # fmt: skip
    assert by_cell(items) == {("frail", "fake"): 5, ("a", "fake"): 20}
    assert "failed in 5 rollouts in a row alike" in watching.refusals["frail"]


async def test_a_wrong_answer_is_never_run_again(matrices: Matrices) -> None:
    async def wrong(task: Task, sandbox: Sandbox, model: ModelEndpoint) -> None:
        await sandbox.write("/workspace/answer.txt", b"wrong")

    every = MatrixOptions(retry=RetryPolicy(infrastructure=3, model=3, harness=3))
    first = await collected(matrices(harnesses=[Named("w", wrong)], options=every))
    assert [rollout.score for _, rollout in first] == [0.0] * 3
    assert await collected(matrices(harnesses=[Named("w", wrong)], options=every)) == []


async def test_a_stop_keeps_what_is_finished_and_a_later_start_runs_the_rest(matrices: Matrices) -> None:
    stop = Stop()
    seen: list[Item] = []
    async for item in matrices(stop=stop, options=MatrixOptions(concurrency=1)):
        seen.append(item)
        stop.request()
    finished = [rollout.id for _, rollout in seen if rollout.score is not None]
    rest = await collected(matrices())
    assert 1 <= len(finished) < 6
    assert len(finished) + len(rest) == 6


async def test_a_matrix_has_one_runner(matrices: Matrices) -> None:
    running = matrices()
    await anext(running)
    with pytest.raises(RunLocked, match="is being written by process"):
        await anext(matrices())
    await running.aclose()
    await collected(matrices())


async def test_leaving_early_leaves_no_task_behind(matrices: Matrices) -> None:
    before = asyncio.all_tasks()
    running = matrices(tasksets=[FakeTaskSet.of(20)])
    await anext(running)
    await running.aclose()
    assert asyncio.all_tasks() <= before


async def test_a_directory_is_gone_on_with_by_name_alone(matrices: Matrices, tmp_path: Path) -> None:
    with pytest.raises(RunNotFound, match="no matrix at"):
        await collected(matrices(harnesses=[], models=[], tasksets=[]))
    assert not (tmp_path / "m" / "matrix.json").exists()


async def test_two_parts_of_one_name_need_labels(matrices: Matrices) -> None:
    with pytest.raises(ConfigError, match="names the harness 'react' twice"):
        await collected(matrices(harnesses=["react", "react"]))
