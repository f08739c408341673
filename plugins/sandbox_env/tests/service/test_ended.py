"""Ended jobs are remembered within a bound that tenants share."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest
from orchard_env.service.ended import EndedJobs
from orchard_env.service.entry import Entry
from orchard_env.service.job import Job

from orchard_core import ExecResult, RunTold, SandboxGone, SandboxSpec
from orchard_core.testing import FakeProvider


def ended(number: int, *, tenant: str = "ada", size: int = 0, command: str = "true") -> Job:
    result = ExecResult(
        exit_code=0,
        stdout=b"x" * size,
        stderr=b"",
        stdout_size=size,
        stderr_size=0,
        timed_out=False,
        duration_s=0.1,
    )
    told = RunTold(
        id=f"run-{number}", state="exited", created=1.0, started=1.0, ended=2.0, failure=None, result=result
    )
    return Job(id=f"{tenant}.run-{number}", sandbox_id=tenant, tenant=tenant, command=command, told=told)


def test_the_oldest_goes_when_the_bound_is_reached() -> None:
    jobs = EndedJobs(100_000)
    for number in range(1000):
        assert jobs.keep(ended(number), 1)
        assert jobs.weight <= 100_000
    assert jobs.get("ada.run-999") is not None
    assert jobs.get("ada.run-0") is None


def test_outputs_and_commands_count() -> None:
    jobs = EndedJobs(100_000)
    jobs.keep(ended(0, size=60_000), 1)
    jobs.keep(ended(1, command="y" * 60_000), 1)
    assert jobs.get("ada.run-0") is None
    assert jobs.get("ada.run-1") is not None


def test_a_tenant_with_many_jobs_pushes_out_its_own() -> None:
    jobs = EndedJobs(100_000)
    jobs.keep(ended(0, tenant="bob"), 1)
    for number in range(1000):
        jobs.keep(ended(number), 2)
    assert jobs.get("bob.run-0") is not None


def test_one_that_alone_is_too_large_is_not_kept() -> None:
    jobs = EndedJobs(10_000)
    assert jobs.keep(ended(0, size=60_000), 1)
    assert jobs.get("ada.run-0") is None
    assert jobs.weight == 0


def test_the_same_ids_in_a_later_sandbox_are_news() -> None:
    jobs = EndedJobs(100_000)
    assert jobs.keep(ended(0), 1)
    assert not jobs.keep(ended(0), 1)
    assert jobs.keep(ended(0, size=10), 2)
    known = jobs.get("ada.run-0")
    assert known is not None
    assert known.home == 2
    assert known.job.told.result is not None
    assert known.job.told.result.stdout == b"x" * 10


async def test_an_entry_that_is_kept_keeps_no_sandbox_that_was_closed() -> None:
    spec = SandboxSpec(name="one")
    entry = Entry(sandbox_id="one", spec=spec, created=0.0)
    provider = FakeProvider()
    entry.succeed(await provider.create(spec))
    sandbox: weakref.ref[Any] = weakref.ref(entry.sandbox)
    await entry.close()
    await provider.close()
    del provider
    async with asyncio.timeout(60):
        while sandbox() is not None:
            await asyncio.sleep(0.01)
            gc.collect()
    with pytest.raises(SandboxGone, match="one was deleted"):
        _ = entry.sandbox


def test_asking_again_for_what_failed_gathers_nothing() -> None:
    entry = Entry(sandbox_id="one", spec=SandboxSpec(), created=0.0)
    fault = SandboxGone("it is gone")
    entry.fail(fault)
    for _ in range(100):
        with pytest.raises(SandboxGone):
            _ = entry.sandbox
    depth, frame = 0, fault.__traceback__
    while frame is not None:
        depth, frame = depth + 1, frame.tb_next
    assert depth < 5
