"""The contract suite of workforces."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
import pytest_asyncio

from orchard_core.errors import ConfigError, WorkersFailed
from orchard_core.rollout.opening import open_parts, resolve, select_tasks
from orchard_core.rollout.retry import RetryPolicy
from orchard_core.rollout.sampler import FixedSampler
from orchard_core.rollout.settings import RolloutSettings
from orchard_core.rollout.share import Share
from orchard_core.rollout.stop import Stop
from orchard_core.rollout.store.entry import Finished
from orchard_core.rollout.store.files import DiskFiles
from orchard_core.rollout.store.inheriting import entries_of
from orchard_core.rollout.store.run import open_run
from orchard_core.rollout.store.writer import RunWriter
from orchard_core.rollout.workers.contract import WorkerNews, Workforce, WorkOrder

_COUNT = 2
_PATIENCE_S = 240.0
"""Far more than any of it takes where a worker can start at all."""


class WorkforceSuite:
    """Subclasses give the fixture `workforce`. Its workers must see the temporary directories of the tests:
    where they run elsewhere, set TMPDIR to a directory that they share."""

    sandbox: ClassVar[str] = "local"
    """Provider of the sandboxes of the rollouts. `process` only where a worker has a file system of its
    own, such as a container's: the tasks write to /workspace."""

    @pytest.fixture
    def told(self) -> list[WorkerNews]:
        """What was told of the workers."""
        return []

    @pytest.fixture
    def nothing(self, tmp_path: Path) -> WorkOrder:
        """Work on a directory that holds no run: each worker ends at once, with a message."""
        (tmp_path / "nothing").mkdir()
        return WorkOrder(run=tmp_path / "nothing", count=_COUNT)

    @pytest_asyncio.fixture
    async def order(self, tmp_path: Path) -> WorkOrder:
        """Work on a run of four rollouts, of which none has begun."""
        async with AsyncExitStack() as stack:
            try:
                parts = await open_parts(
                    stack, "workbench:4", harness="react", model="oracle", sandbox=self.sandbox
                )
            except ConfigError as error:
                pytest.skip(f"its workers would have nothing to run: {error.message}")
            parts = replace(parts, settings=RolloutSettings(allow_shared_paths=self.sandbox == "process"))
            tasks = select_tasks(parts.taskset, lambda _task: True)
            config = resolve(
                parts, tasks, sampler=FixedSampler(size=1), attempts=1, concurrency=_COUNT, seed=0,
                retry=RetryPolicy(), options={},
            )  # fmt: skip
            async with await RunWriter.open(tmp_path / "run", config):
                pass
        return WorkOrder(run=tmp_path / "run", count=_COUNT)

    def test_it_is_what_the_contract_names(self, workforce: Workforce) -> None:
        """Users choose it by name: the name is there and stays the same."""
        assert isinstance(workforce, Workforce)
        assert workforce.name
        assert workforce.name == workforce.name

    @pytest.mark.asyncio
    async def test_it_returns_when_each_worker_has_done_its_share(
        self, workforce: Workforce, order: WorkOrder, told: list[WorkerNews]
    ) -> None:
        """The coordinator takes `work` that returned for a run that is done: return then, and not before."""
        async with asyncio.timeout(_PATIENCE_S):
            await workforce.work(order, Stop(), told.append)
        shares = [Share(index=index, count=_COUNT).folder(order.run) for index in range(_COUNT)]
        done = [sum(isinstance(one, Finished) for one in entries_of(share)) for share in shares]
        assert done == [2, 2], f"finished by each worker: {done}; told: {told}"
        _assert_none_writes(order)

    @pytest.mark.asyncio
    async def test_what_no_restart_would_mend_is_told_at_once_in_the_workers_words(
        self, workforce: Workforce, nothing: WorkOrder, told: list[WorkerNews]
    ) -> None:
        """A wrong flag or a missing file would fail forever: raise WorkersFailed with what a worker said."""
        with pytest.raises(WorkersFailed) as caught:
            async with asyncio.timeout(_PATIENCE_S):
                await workforce.work(nothing, Stop(), told.append)
        assert "there is no run at" in caught.value.message
        assert caught.value.hint
        assert not [news for news in told if "again" in news.text]

    @pytest.mark.asyncio
    async def test_asked_to_stop_it_returns_and_leaves_no_worker(
        self, workforce: Workforce, order: WorkOrder, told: list[WorkerNews]
    ) -> None:
        """Ctrl-C must end every worker in order, and is no failure, even when nothing has begun."""
        stop = Stop()
        stop.request()
        async with asyncio.timeout(_PATIENCE_S):
            await workforce.work(order, stop, told.append)
        _assert_none_writes(order)

    @pytest.mark.asyncio
    async def test_cancelled_it_leaves_no_worker(
        self, workforce: Workforce, order: WorkOrder, told: list[WorkerNews]
    ) -> None:
        """The coordinator cancels `work` when its own disk fails: nothing may run when that is raised."""
        working = asyncio.create_task(workforce.work(order, Stop(), told.append))
        async with asyncio.timeout(_PATIENCE_S):
            await _until_begun(working, order)
            working.cancel()
            await asyncio.wait([working])
        _assert_none_writes(order)

    @pytest.mark.asyncio
    async def test_where_nothing_was_left_settle_returns(
        self, workforce: Workforce, nothing: WorkOrder
    ) -> None:
        """It is asked before every start; most have nothing to end."""
        async with asyncio.timeout(_PATIENCE_S):
            await workforce.settle(nothing)
        assert list(nothing.run.glob("*/*.jsonl")) == []


async def _until_begun(working: asyncio.Task[None], order: WorkOrder) -> None:
    while not working.done() and not list(order.run.glob("workers/*/journal.jsonl")):
        await asyncio.sleep(0.05)


def _assert_none_writes(order: WorkOrder) -> None:
    """A worker holds the lock of its part."""
    for part in order.run.glob("workers/[0-9]*"):
        DiskFiles().lock(part / "lock").release()
        assert open_run(part).damaged() == []
