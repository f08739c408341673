"""The smallest honest harness: ask, run what is asked for, repeat."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from orchard_core.errors import ModelRejected
from orchard_core.sandbox.contract import Sandbox
from orchard_core.tasks.contract import Tool
from orchard_core.testing.fakes.chat import chat
from orchard_core.types.content import Text
from orchard_core.types.harness import HarnessCapabilities, HarnessResult, Limits, StopReason, ToolUse
from orchard_core.types.model import ModelEndpoint
from orchard_core.types.task import Task
from orchard_core.types.tool import ToolResult

_BASH: dict[str, Any] = {
    "name": "bash",
    "description": "Runs a shell command.",
    "parameters": {
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"],
    },
}


class FakeHarness:
    """Honours `orchard_core.Harness`: native tool calls, the task's tools and `bash`."""

    def __init__(self, *, command_timeout_s: float = 30.0) -> None:
        self._command_timeout_s = command_timeout_s

    @property
    def name(self) -> str:
        """See Harness."""
        return "fake"

    @property
    def version(self) -> str:
        """See Harness."""
        return "1"

    @property
    def capabilities(self) -> HarnessCapabilities:
        """See Harness."""
        return HarnessCapabilities(tools=ToolUse.NATIVE, replayable=True)

    async def run(
        self, task: Task, sandbox: Sandbox, model: ModelEndpoint, tools: Sequence[Tool], limits: Limits
    ) -> HarnessResult:
        """See Harness."""
        messages: list[Mapping[str, Any]] = [{"role": "user", "content": task.instruction}]
        offered = [{"type": "function", "function": spec} for spec in (_BASH, *map(_spec, tools))]
        turns = 0
        malformed = 0
        while limits.turns is None or turns < limits.turns:
            try:
                answer = await chat(model, messages, tools=offered)
            except ModelRejected as error:
                if "budget" not in error.body.lower():
                    raise
                return HarnessResult(stop=StopReason.BUDGET, turns=turns, malformed_calls=malformed)
            turns += 1
            messages.append(answer)
            calls = answer.get("tool_calls") or []
            if not calls:
                text = answer.get("content")
                return HarnessResult(
                    stop=StopReason.ANSWERED,
                    answer=text if isinstance(text, str) else None,
                    turns=turns,
                    malformed_calls=malformed,
                )
            for call in calls:
                result = await self._act(call, task, sandbox, tools)
                malformed += result is None
                result = result or ToolResult.text(
                    "That call is malformed: send a JSON object.", is_error=True
                )
                messages.append(_observation(call, result))
                if result.ends:
                    return HarnessResult(stop=StopReason.SUBMITTED, answer=result.answer, turns=turns)
        return HarnessResult(stop=StopReason.TURN_LIMIT, turns=turns, malformed_calls=malformed)

    async def _act(
        self, call: Mapping[str, Any], task: Task, sandbox: Sandbox, tools: Sequence[Tool]
    ) -> ToolResult | None:
        name, args = _read(call)
        if args is None:
            return None
        if name == "bash" and isinstance(command := args.get("command"), str):
            done = await sandbox.exec(command, cwd=task.workdir, timeout=self._command_timeout_s)
            return ToolResult.text(f"{done.text}\n[exit {done.exit_code}]", is_error=not done.ok)
        tool = next((tool for tool in tools if tool.name == name), None)
        return await tool.call(args) if tool is not None else None


def _spec(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}


def _read(call: Mapping[str, Any]) -> tuple[str, Mapping[str, JsonValue] | None]:
    function = call.get("function")
    if not isinstance(function, dict):
        return "", None
    try:
        args = json.loads(function.get("arguments") or "{}")
    except (TypeError, ValueError):
        return str(function.get("name")), None
    return str(function.get("name")), args if isinstance(args, dict) else None


def _observation(call: Mapping[str, Any], result: ToolResult) -> Mapping[str, Any]:
    text = "\n".join(part.text for part in result.content if isinstance(part, Text))
    return {"role": "tool", "tool_call_id": str(call.get("id", "")), "content": text}
