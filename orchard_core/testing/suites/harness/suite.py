"""What every harness must do. Model and gateway are real; the oracle plays whatever shell it is offered."""

from __future__ import annotations

import asyncio

import pytest

from orchard_core.errors import ModelError, ModelRejected, ModelUnavailable, OrchardError, SandboxError
from orchard_core.gateway.scripted import OracleModel
from orchard_core.harness.contract import Harness
from orchard_core.sandbox.contract import Sandbox, SandboxProvider
from orchard_core.testing.fakes.model import FakeModel
from orchard_core.testing.fakes.reply import FakeReply
from orchard_core.testing.suites.harness.stage import Stage, steps
from orchard_core.testing.suites.harness.tools import ToolTests
from orchard_core.types.harness import HarnessCapabilities, HarnessResult, Limits, StopReason
from orchard_core.types.sandbox import SandboxSpec
from orchard_core.types.tool import ToolCall

FAILED = {StopReason.MODEL_ERROR, StopReason.ERROR, StopReason.BUDGET, StopReason.CONTEXT_LIMIT}
"""How a run may say that its model could not be had."""


class HarnessSuite(ToolTests):
    """Subclasses give the fixture `harness`, and `make_provider` where it needs a real sandbox:

    class TestMine(HarnessSuite):
        @pytest.fixture
        def harness(self):
            return MyHarness()
    """

    async def test_it_is_what_the_contract_names(self, harness: Harness) -> None:
        """Reports and resume rely on name and version: both are there and stay the same."""
        assert isinstance(harness, Harness)
        assert harness.name
        assert harness.version
        assert (harness.name, harness.version) == (harness.name, harness.version)
        assert isinstance(harness.capabilities, HarnessCapabilities)

    async def test_a_task_is_finished(self, stage: Stage, sandbox: Sandbox) -> None:
        """The whole job: the model's commands reach the sandbox, and the run stops when it says so."""
        played = await stage.play(
            self.task(),
            sandbox,
            OracleModel(),
            solution=steps("printf 4 > answer.txt", "printf 2 >> answer.txt"),
        )
        assert played.result.stop in (StopReason.SUBMITTED, StopReason.ANSWERED)
        assert played.result.turns >= 2
        assert (await sandbox.exec("cat answer.txt")).stdout == b"42"
        assert HarnessResult.model_validate_json(played.result.model_dump_json()) == played.result

    async def test_the_answer_is_reported(self, stage: Stage, sandbox: Sandbox) -> None:
        """Question-answering tasks are scored by `answer`: hand on what the agent submitted."""
        solution = steps("true", answer="forty-two")
        played = await stage.play(self.task(), sandbox, OracleModel(), solution=solution)
        assert played.result.answer is not None
        assert "forty-two" in played.result.answer

    async def test_every_call_goes_through_the_session(self, stage: Stage, sandbox: Sandbox) -> None:
        """What the gateway does not see is never trained on: use the endpoint given, for side calls too."""
        model = FakeModel()
        played = await stage.play(self.task(instruction="Recognise zebra-7."), sandbox, model)
        (upstream,) = model.upstreams
        assert played.trajectory.calls
        assert len(upstream.requests) == len(played.trajectory.calls)
        assert "Recognise zebra-7." in played.heard

    async def test_results_of_commands_reach_the_model(self, stage: Stage, sandbox: Sandbox) -> None:
        """A model that is blind to its commands cannot act: the output stands in the next request."""
        marked = steps("echo seen-$((40+2))-by-model", "true")
        played = await stage.play(self.task(), sandbox, OracleModel(), solution=marked)
        assert "seen-42-by-model" in played.heard

    async def test_runs_side_by_side_share_nothing(
        self, stage: Stage, provider: SandboxProvider, spec: SandboxSpec
    ) -> None:
        """One object runs many tasks at once: keep state in the run, never on the object or in globals."""

        async def one(name: str) -> None:
            task = self.task(name, f"Write {name} into answer.txt.")
            async with await provider.create(spec) as sandbox:
                solution = steps(f"printf {name} > answer.txt", "sleep 0.2", answer=name)
                played = await stage.play(task, sandbox, OracleModel(), solution=solution)
                assert (await sandbox.exec("cat answer.txt")).stdout == name.encode()
                others = {"alpha", "beta", "gamma"} - {name}
                assert [other for other in others if other in played.heard] == []
                assert name in (played.result.answer or "")

        await asyncio.gather(*(one(name) for name in ("alpha", "beta", "gamma")))

    async def test_a_second_run_knows_nothing_of_the_first(
        self, stage: Stage, provider: SandboxProvider, spec: SandboxSpec
    ) -> None:
        """Attempts are independent: nothing of the first may stand in the second's requests."""
        for name in ("first-run", "second-run"):
            async with await provider.create(spec) as sandbox:
                played = await stage.play(self.task(name, f"This is {name}."), sandbox, FakeModel())
        assert "first-run" not in played.heard

    async def test_the_turn_limit_stops_it(
        self, stage: Stage, sandbox: Sandbox, able: HarnessCapabilities
    ) -> None:
        """`Limits.turns` bounds the answers acted upon: stop with TURN_LIMIT, work done so far kept."""
        if not able.turn_limit:
            pytest.skip("it cannot stop after a number of turns, and says so")
        solution = steps(*(f"echo {n} >> log" for n in range(30)))
        played = await stage.play(
            self.task(), sandbox, OracleModel(), solution=solution, limits=Limits(turns=3)
        )
        assert played.result.stop is StopReason.TURN_LIMIT
        assert played.result.turns == 3
        assert (await sandbox.exec("cat log")).stdout.count(b"\n") <= 3

    async def test_an_exhausted_budget_stops_it(self, stage: Stage, sandbox: Sandbox) -> None:
        """The gateway refuses calls beyond the budget: stop with BUDGET or pass it on, never retry."""
        solution = steps(*(f"echo {n} >> log" for n in range(30)))
        try:
            async with asyncio.timeout(self.patience_s):
                played = await stage.play(
                    self.task(), sandbox, OracleModel(), solution=solution, session_limits=Limits(calls=2)
                )
        except ModelError:
            pass
        else:
            assert played.result.stop is StopReason.BUDGET
        assert stage.last is not None
        assert stage.last.exhausted is not None
        assert len(stage.last.trajectory().calls) == 2

    async def test_cancelling_ends_it_while_the_model_thinks(self, stage: Stage, sandbox: Sandbox) -> None:
        """Deadlines cancel the run: let CancelledError through, and leave no call in flight."""
        model = FakeModel(otherwise=FakeReply(delay_s=500))
        run = asyncio.create_task(stage.play(self.task(), sandbox, model))
        async with asyncio.timeout(self.patience_s):
            while not (model.upstreams and model.upstreams[0].requests):
                await asyncio.sleep(0.02)
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run

    async def test_cancelling_ends_what_it_started(self, stage: Stage, sandbox: Sandbox) -> None:
        """A command that runs on after its harness spoils verification: end it on the way out."""
        solution = steps("echo $$ > pid; sleep 300")
        run = asyncio.create_task(stage.play(self.task(), sandbox, OracleModel(), solution=solution))
        async with asyncio.timeout(self.patience_s):
            while not (await sandbox.exec("test -s pid")).ok:
                assert not run.done(), "it ended without waiting for the command"
                await asyncio.sleep(0.05)
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run
            while (await sandbox.exec("kill -0 $(cat pid)")).ok:
                await asyncio.sleep(0.05)

    @pytest.mark.parametrize(
        "error",
        [
            ModelUnavailable("the server is down"),
            ModelRejected("no such model", status=404, body='{"error": {"message": "no such model"}}'),
        ],
        ids=["unavailable", "rejected"],
    )
    async def test_a_model_that_fails_is_not_a_success(
        self, stage: Stage, sandbox: Sandbox, error: OrchardError
    ) -> None:
        """A model's fault is not the agent's: pass the ModelError on, or stop with MODEL_ERROR."""
        model = FakeModel(otherwise=FakeReply(error=error))
        async with asyncio.timeout(self.patience_s):
            try:
                played = await stage.play(self.task(), sandbox, model)
            except ModelError:
                return
        assert played.result.stop in FAILED

    async def test_a_sandbox_that_is_gone_is_not_a_success(self, stage: Stage, sandbox: Sandbox) -> None:
        """A dead sandbox must not be booked on the agent: pass the SandboxError on untouched."""
        await sandbox.close()
        with pytest.raises(SandboxError):
            await stage.play(self.task(), sandbox, OracleModel(), solution=steps("true", "true", "true"))

    @pytest.mark.parametrize(
        "reply",
        [
            FakeReply.call("no_such_tool", path="x"),
            FakeReply(calls=(ToolCall(id="c1", name="bash", arguments="{not json"),)),
            FakeReply(calls=(ToolCall(id="c1", name="bash", arguments='["a", "list"]'),)),
            FakeReply(calls=(ToolCall(id="c1", name="bash", arguments='{"command": 5}'),)),
            FakeReply(calls=(ToolCall(id="c1", name="bash", arguments="{}"),)),
            FakeReply(calls=(ToolCall(id="", name="", arguments=""),)),
            FakeReply(text=""),
            FakeReply(text="x" * 500_000),
            FakeReply(text="\ud83d broken"),
            FakeReply(text='<tool_call>{"name": }</tool_call> ```bash\n'),
            FakeReply(text="cut off in", finish="length"),
        ],
        ids=[
            "unknown tool",
            "no json",
            "list for arguments",
            "wrong type",
            "missing argument",
            "empty call",
            "empty answer",
            "huge answer",
            "lone surrogate",
            "broken markup",
            "cut answer",
        ],
    )
    async def test_malformed_answers_do_not_crash_it(
        self, stage: Stage, sandbox: Sandbox, reply: FakeReply
    ) -> None:
        """A model's mistakes are data: answer them with a helpful error, or stop; never raise."""
        model = FakeModel([reply] * 8)
        async with asyncio.timeout(self.patience_s):
            played = await stage.play(self.task(), sandbox, model, limits=Limits(turns=6))
        assert isinstance(played.result, HarnessResult)
        assert played.result.stop is not StopReason.ERROR

    async def test_the_session_key_is_not_in_the_result(self, stage: Stage, sandbox: Sandbox) -> None:
        """Results are stored and shared: no key in messages or kept files."""
        played = await stage.play(self.task(), sandbox, FakeModel())
        key = played.session.endpoint.api_key
        assert key not in played.result.model_dump_json()
        assert not any(key.encode() in data for data in played.result.artifacts.values())
