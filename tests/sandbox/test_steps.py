"""The steps of a creation, and the calls to agents, as somebody who measures sees them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from orchard_core import CreationStep, creation_steps, note_step, open_sandbox, watch_agent_calls


async def test_a_sandbox_is_placed_then_its_agent_answers_then_it_is_furnished() -> None:
    with creation_steps() as steps:
        async with open_sandbox("process"):
            pass
    assert [*steps] == [CreationStep.PLACED, CreationStep.ANSWERED, CreationStep.FURNISHED]
    assert [*steps.values()] == sorted(steps.values())


def test_a_step_that_nobody_measures_is_noted_nowhere() -> None:
    note_step(CreationStep.PLACED)
    with creation_steps() as outer:
        with creation_steps() as inner:
            note_step(CreationStep.POOL_HIT)
        note_step(CreationStep.POOL_MISS)
    assert ([*outer], [*inner]) == ([CreationStep.POOL_MISS], [CreationStep.POOL_HIT])


def test_a_step_that_is_told_of_later_keeps_its_time_and_its_order() -> None:
    began = time.monotonic()
    with creation_steps() as steps:
        note_step(CreationStep.SCHEDULED)
        note_step(CreationStep.PULLED, ago_s=3600.0)
        time.sleep(0.02)
        note_step(CreationStep.ANSWERED, ago_s=0.005)
        note_step(CreationStep.FURNISHED, ago_s=-3600.0)
        took = time.monotonic() - began
    assert steps[CreationStep.SCHEDULED] == steps[CreationStep.PULLED]
    assert steps[CreationStep.PULLED] + 0.005 <= steps[CreationStep.ANSWERED] <= took - 0.005
    assert steps[CreationStep.ANSWERED] <= steps[CreationStep.FURNISHED] <= took


class Seen:
    """One call."""

    def __init__(self, method: str, path: str) -> None:
        self.call = (method, path)
        self.headers: Mapping[str, str] = {"X-Test": "1"}
        self.status = 0
        self.over = False

    def answered(self, status: int) -> None:
        self.status = status


async def test_every_call_to_an_agent_is_seen_from_its_beginning_to_its_end() -> None:
    calls: list[Seen] = []

    @contextmanager
    def watcher(method: str, path: str) -> Iterator[Seen]:
        calls.append(Seen(method, path))
        yield calls[-1]
        calls[-1].over = True

    async with open_sandbox("process") as sandbox:
        watch_agent_calls(watcher)
        await sandbox.exec("true")
        watch_agent_calls(None)
        await sandbox.exec("true")
    assert [seen.call for seen in calls] == [("POST", "/v1/exec")]
    assert (calls[0].status, calls[0].over) == (200, True)
