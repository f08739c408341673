"""A task's tools reach the harness as its capability says, and tell the same story whichever way that is."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Mapping, Sequence
from typing import ClassVar

import pytest

from orchard_core.errors import TaskInvalid
from orchard_core.harness.tool_client import client_path
from orchard_core.sandbox.contract import Sandbox
from orchard_core.testing.fakes.model import FakeModel
from orchard_core.testing.fakes.reply import FakeReply
from orchard_core.testing.fakes.tool import FakeTool
from orchard_core.testing.suites.harness.base import HarnessTests
from orchard_core.testing.suites.harness.stage import Stage, as_json, main_calls
from orchard_core.types.content import Image, Text
from orchard_core.types.harness import HarnessCapabilities, Limits, StopReason, ToolUse
from orchard_core.types.tool import ToolCall, ToolResult

WORDS = 'ping-7\'s $HOME \\ "x"'
"""Must arrive byte by byte, through shells too."""


TITLE = FakeReply(text="A title")
"""What side calls hear, which offer no tools."""


def scripted(replies: Sequence[FakeReply]) -> FakeModel:
    """A model that says these things in the conversation, whatever is asked beside it."""
    return FakeModel(replies, side=TITLE)


class ToolTests(HarnessTests):
    """Subclasses say how a model behind this harness calls a tool, where it is not the usual way."""

    native_calls: ClassVar[bool] = True
    """The model's tool calls are native ones, as the fake model writes them."""
    mcp_name: ClassVar[str] = "mcp__orchard__{}"
    """What an MCP harness calls a tool of the task."""
    shell_tool: ClassVar[str] = "bash"
    """The harness's own tool that runs a command, by which a `cli` harness calls the task's tools."""
    shell_argument: ClassVar[str] = "command"
    """The argument of `shell_tool` that is the command."""

    def tool_call(
        self, able: HarnessCapabilities, sandbox: Sandbox, name: str, arguments: Mapping[str, str]
    ) -> tuple[str, Mapping[str, object]]:
        """Name and arguments of the model's call that makes the harness call this tool of the task."""
        if able.tools is ToolUse.MCP:
            return self.mcp_name.format(name), dict(arguments)
        if able.tools is ToolUse.CLI:
            words = shlex.join([client_path(sandbox), name, json.dumps(dict(arguments))])
            return self.shell_tool, {self.shell_argument: words}
        return name, dict(arguments)

    def calling(
        self, able: HarnessCapabilities, sandbox: Sandbox, *calls: tuple[str, Mapping[str, str]]
    ) -> FakeReply:
        """An answer that makes these calls; skips where there are none."""
        if able.tools is ToolUse.NONE or not self.native_calls:
            pytest.skip(f"it takes tools by {able.tools.value}, and not by the fake model's native calls")
        made = [self.tool_call(able, sandbox, name, arguments) for name, arguments in calls]
        return FakeReply(
            calls=tuple(
                ToolCall(id=f"call_{number}", name=name, arguments=json.dumps(arguments))
                for number, (name, arguments) in enumerate(made)
            )
        )

    def play_limits(self, able: HarnessCapabilities) -> Limits:
        """So that a harness which goes on for ever fails its test."""
        return Limits(turns=6) if able.turn_limit else Limits()

    async def test_a_tasks_tool_is_called_and_heard(
        self, stage: Stage, sandbox: Sandbox, able: HarnessCapabilities
    ) -> None:
        """The task's tools are why it was chosen: call them once each time, and show what they gave."""
        tool = FakeTool(act=lambda args: ToolResult.text(f"heard {args['words']} loudly"))
        model = scripted([self.calling(able, sandbox, ("echo", {"words": WORDS}))])
        played = await stage.play(self.task(), sandbox, model, tools=[tool], limits=self.play_limits(able))
        assert tool.calls == [{"words": WORDS}]
        assert as_json(f"heard {WORDS} loudly") in played.heard
        assert played.result.stop is not StopReason.ERROR

    async def test_several_calls_in_a_turn_run_in_order(
        self, stage: Stage, sandbox: Sandbox, able: HarnessCapabilities
    ) -> None:
        """Models send calls in the order they mean: run each once, in that order unless the capabilities say
        that it runs them at once, and answer each."""
        tool = FakeTool()
        numbers = [f"number-{n}" for n in range(3)]
        reply = self.calling(able, sandbox, *(("echo", {"words": number}) for number in numbers))
        played = await stage.play(
            self.task(),
            sandbox,
            scripted([reply]),
            tools=[tool],
            limits=self.play_limits(able),
        )
        ran = [str(call["words"]) for call in tool.calls]
        assert (ran if able.calls_in_order else sorted(ran)) == numbers
        assert [f"call_{n}" for n in range(3) if f'"call_{n}"' not in played.heard] == []

    async def test_a_tools_error_is_shown_and_the_run_goes_on(
        self, stage: Stage, sandbox: Sandbox, able: HarnessCapabilities
    ) -> None:
        """A failed call is something to learn from: show its text, keep going."""
        tool = FakeTool(act=lambda args: ToolResult.text("no such page: try /home", is_error=True))
        model = FakeModel(
            side=TITLE, replies=[self.calling(able, sandbox, ("echo", {"words": word})) for word in "ab"]
        )
        played = await stage.play(self.task(), sandbox, model, tools=[tool], limits=self.play_limits(able))
        assert len(tool.calls) == 2
        assert "no such page: try /home" in played.heard

    async def test_a_tool_that_ends_the_episode_ends_it(
        self, stage: Stage, sandbox: Sandbox, able: HarnessCapabilities
    ) -> None:
        """`ends` is the task's own word: stop with SUBMITTED and its answer, ask no more. A harness that
        calls tools itself reads it off the result; any other is ended by the core."""
        final = ToolResult(content=(Text(text="bye"),), ends=True, answer="the end")
        tool = FakeTool("finish_task", act=lambda args: final)
        model = FakeModel(
            side=TITLE, replies=[self.calling(able, sandbox, ("finish_task", {"words": "x"}))] * 3
        )
        played = await stage.play(self.task(), sandbox, model, tools=[tool], limits=self.play_limits(able))
        assert len(tool.calls) == 1
        assert (played.result.stop, played.result.answer) == (StopReason.SUBMITTED, "the end")
        assert played.result.turns == 1
        assert len(played.main_calls) == 1

    async def test_a_tool_that_breaks_is_the_tasks_fault(
        self, stage: Stage, sandbox: Sandbox, able: HarnessCapabilities
    ) -> None:
        """What a tool raises is no observation for the model to work around: pass it on untouched."""

        def fail(args: object) -> ToolResult:
            raise ZeroDivisionError("the task's own bug")

        model = scripted([self.calling(able, sandbox, ("echo", {"words": "x"}))] * 3)
        with pytest.raises(TaskInvalid, match="the task's own bug"):
            await stage.play(
                self.task(), sandbox, model, tools=[FakeTool(act=fail)], limits=self.play_limits(able)
            )
        assert stage.last is not None
        assert len(main_calls(stage.last.trajectory())) == 1

    async def test_pictures_are_shown_where_claimed(
        self, stage: Stage, sandbox: Sandbox, able: HarnessCapabilities
    ) -> None:
        """`images` promises that a screenshot reaches the model: send the picture, not a note about it."""
        if not able.images or able.tools is ToolUse.CLI:
            pytest.skip("it shows no pictures of tools, and says so")
        tool = FakeTool(act=lambda args: ToolResult(content=(Image(data=_PIXEL),)))
        model = scripted([self.calling(able, sandbox, ("echo", {"words": "look"}))])
        played = await stage.play(self.task(), sandbox, model, tools=[tool], limits=self.play_limits(able))
        assert base64.b64encode(_PIXEL).decode() in played.heard


_PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
