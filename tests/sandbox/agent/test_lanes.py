"""Lanes: commands that wait for one another inside, and runs that are found again by whoever asks."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from pathlib import Path

import pytest

from orchard_core.errors import CwdMissing, ExecError
from orchard_core.sandbox.agent import AgentClient


async def held(agent: AgentClient, gate: Path, lane: str = "v1") -> str:
    """A run that keeps its lane until `gate` exists."""
    await agent.begin(f"until [ -e {gate} ]; do sleep 0.01; done", lane=lane, run_id=f"gate-{lane}")
    return f"gate-{lane}"


async def test_runs_of_a_lane_come_one_after_the_other_in_the_order_of_their_arrival(
    agent: AgentClient, tmp_path: Path
) -> None:
    await held(agent, tmp_path / "gate")
    for number in range(5):
        command = f"echo begin {number} >> {tmp_path}/log; sleep 0.02; echo end {number} >> {tmp_path}/log"
        begun = await agent.begin(command, lane="v1", run_id=f"run-{number}")
        assert (begun.state, begun.lane, begun.started, begun.ended) == ("queued", "v1", None, None)
    (tmp_path / "gate").touch()
    last = await agent.process("run-4").wait(20)
    assert last.exit_code == 0
    lines = (tmp_path / "log").read_text().split("\n")[:-1]
    assert lines == [f"{what} {number}" for number in range(5) for what in ("begin", "end")]
    times = [await agent.run_status(f"run-{number}") for number in range(5)]
    for before, after in pairwise(times):
        assert before.created <= after.created  # type: ignore[operator]  # all have begun
        assert before.ended <= after.started  # type: ignore[operator]


async def test_other_lanes_and_runs_without_one_do_not_wait(agent: AgentClient, tmp_path: Path) -> None:
    await held(agent, tmp_path / "gate")
    assert (await agent.exec(["echo", "free"])).stdout == b"free\n"
    assert (await agent.exec(["echo", "beside"], lane="other")).stdout == b"beside\n"
    (tmp_path / "gate").touch()
    assert (await agent.exec(["echo", "then"], lane="v1")).stdout == b"then\n"


async def test_a_time_out_counts_from_the_real_start(agent: AgentClient, tmp_path: Path) -> None:
    await held(agent, tmp_path / "gate")
    await agent.begin("sleep 0.3; echo whole", lane="v1", run_id="patient", timeout=5.0)
    await agent.begin("sleep 60", lane="v1", run_id="slow", timeout=0.5)
    await asyncio.sleep(0.7)
    assert (await agent.run_status("slow")).state == "queued"
    (tmp_path / "gate").touch()
    assert (await agent.process("patient").wait(20)).stdout == b"whole\n"
    slow = await agent.process("slow").wait(20)
    assert (slow.timed_out, slow.limit_s) == (True, 0.5)
    assert slow.duration_s >= 0.5


async def test_a_queued_run_is_sent_again_without_running_twice(agent: AgentClient, tmp_path: Path) -> None:
    await held(agent, tmp_path / "gate")
    command = f"echo once >> {tmp_path}/log"
    for _ in range(3):
        assert (await agent.begin(command, lane="v1", run_id="again")).state == "queued"
    (tmp_path / "gate").touch()
    assert (await agent.exec(command, lane="v1", run_id="again")).exit_code == 0
    assert (await agent.begin(command, lane="v1", run_id="again")).state == "exited"
    assert (tmp_path / "log").read_text() == "once\n"


@pytest.mark.parametrize("number", [2, 9, 15])
async def test_a_signal_that_ends_programs_drops_a_queued_run(
    agent: AgentClient, tmp_path: Path, number: int
) -> None:
    await held(agent, tmp_path / "gate")
    process = await agent.start(f"touch {tmp_path}/ran", lane="v1", run_id="dropped")
    await process.signal(0)
    await process.signal(28)
    assert (await process.told()).state == "queued"
    await process.signal(number)
    told = await process.told()
    assert (told.state, told.started) == ("exited", None)
    assert (await process.wait(5)).exit_code == 128 + number
    (tmp_path / "gate").touch()
    assert (await agent.exec(["echo", "next"], lane="v1")).ok
    assert not (tmp_path / "ran").exists()


async def test_giving_up_on_a_queued_command_drops_it(agent: AgentClient, tmp_path: Path) -> None:
    await held(agent, tmp_path / "gate")
    waiting = asyncio.create_task(agent.exec(f"touch {tmp_path}/ran", lane="v1", run_id="given-up"))
    while not any(run.id == "given-up" for run in await agent.runs(lane="v1")):
        await asyncio.sleep(0.01)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert (await agent.run_status("given-up")).state == "exited"
    (tmp_path / "gate").touch()
    assert (await agent.exec(["true"], lane="v1")).ok
    assert not (tmp_path / "ran").exists()


async def test_a_run_that_cannot_be_started_in_its_turn_fails_and_the_next_comes(
    agent: AgentClient, tmp_path: Path
) -> None:
    await held(agent, tmp_path / "gate")
    process = await agent.start("true", cwd="/no/such", lane="v1", run_id="nowhere")
    assert (await process.told()).state == "queued"
    after = asyncio.create_task(agent.exec(["echo", "after"], lane="v1"))
    (tmp_path / "gate").touch()
    with pytest.raises(CwdMissing, match="/no/such"):
        await process.wait(10)
    told = await process.told()
    assert told.state == "failed"
    assert "/no/such" in str(told.failure)
    assert (await after).stdout == b"after\n"
    with pytest.raises(CwdMissing):
        await agent.exec("true", cwd="/no/such", lane="v1")
    assert (await agent.exec(["echo", "free"], lane="v1")).stdout == b"free\n"


async def test_input_waits_for_its_run(agent: AgentClient, tmp_path: Path) -> None:
    await held(agent, tmp_path / "gate")
    streamed = asyncio.create_task(agent.exec(["wc", "-c"], stdin=b"x" * 400_000, lane="v1"))
    inline = asyncio.create_task(agent.exec(["cat"], stdin=b"small", lane="v1"))
    while len(await agent.runs(lane="v1")) < 3:
        await asyncio.sleep(0.01)
    (tmp_path / "gate").touch()
    assert (await streamed).stdout.strip() == b"400000"
    assert (await inline).stdout == b"small"


async def test_a_line_has_an_end_and_whoever_comes_then_waits_for_room(
    agent: AgentClient, tmp_path: Path
) -> None:
    await held(agent, tmp_path / "gate")
    large = ["true", *["x" * 120_000] * 8]
    for number in range(4):
        await agent.begin(large, lane="v1", run_id=f"large-{number}")
    body = json.dumps({"id": "more", "argv": large, "lane": "v1"}).encode()
    async with agent.link.carry("POST", "/v1/exec", len(body).to_bytes(4, "big") + body) as answer:
        assert answer.status == 429
        assert json.loads(await answer.read())["code"] == "lane_full"
    one_more = asyncio.create_task(agent.begin(large, lane="v1", wait_s=20.0))
    (tmp_path / "gate").touch()
    assert (await one_more).state == "exited"


async def test_killing_everything_drops_what_waits(agent: AgentClient, tmp_path: Path) -> None:
    await held(agent, tmp_path / "gate")
    await agent.begin(f"touch {tmp_path}/ran", lane="v1")
    await agent.kill_all()
    assert {run.state for run in await agent.runs(lane="v1")} == {"exited"}
    assert (await agent.exec(["echo", "free"], lane="v1")).stdout == b"free\n"
    assert not (tmp_path / "ran").exists()


async def test_runs_are_found_again_by_a_client_that_did_not_start_them(
    agent: AgentClient, tmp_path: Path
) -> None:
    await held(agent, tmp_path / "gate")
    await agent.begin("printf said; printf warned >&2; exit 3", lane="v1", run_id="job")
    await agent.exec(["true"], run_id="beside")
    async with AgentClient(agent.endpoint) as other:
        assert [(run.id, run.state) for run in await other.runs()] == [
            ("gate-v1", "running"), ("job", "queued"), ("beside", "exited"),
        ]  # fmt: skip
        assert [run.id for run in await other.runs(limit=1)] == ["beside"]
        (tmp_path / "gate").touch()
        told = await other.run_status("job", wait_s=20)
        assert told.result is not None
        assert (told.result.exit_code, told.result.stdout, told.result.stderr) == (3, b"said", b"warned")
        output = await other.run_output("job", cursor=2)
        assert (output.data, output.start, output.cursor, output.size, output.ended) == (b"id", 2, 4, 4, True)
        assert (await other.run_output("job", "stderr")).data == b"warned"
        with pytest.raises(ExecError):
            await other.run_status("never")


async def test_revoking_a_token_drops_what_it_had_queued(agent: AgentClient, tmp_path: Path) -> None:
    await held(agent, tmp_path / "gate")
    minted = await agent.mint_token()
    async with AgentClient(minted) as worker:
        await worker.begin(f"touch {tmp_path}/ran", lane="v1", run_id="theirs")
    await agent.revoke_token(minted.token)
    assert (await agent.run_status("theirs")).state == "exited"
    (tmp_path / "gate").touch()
    assert (await agent.exec(["true"], lane="v1")).ok
    assert not (tmp_path / "ran").exists()
