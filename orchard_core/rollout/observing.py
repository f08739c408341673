"""What tools and commands gave after the last model call, which no later request carries."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic

from pydantic import JsonValue

from orchard_core.errors import ExecError, FileError, OrchardError, TaskInvalid
from orchard_core.gateway.conversation import content_hash
from orchard_core.rollout.text import excerpt
from orchard_core.rollout.tool_ending import ToolEnding
from orchard_core.tasks.contract import Tool
from orchard_core.tasks.wrapper import ToolWrapper
from orchard_core.types.content import Content, Text
from orchard_core.types.model import Message, ModelCall
from orchard_core.types.sandbox import ExecResult
from orchard_core.types.tool import ToolResult
from orchard_core.types.trajectory import Trajectory

RESULT_LIMIT = 16 << 10
"""Characters kept of one result, head and tail."""
RESULTS = 32
"""Results kept, the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    began: float
    name: str
    content: str


class LastResults:
    """Results since the newest model call, bounded in number and size.

    What began before that call was answered is left out: a request carries it, or it is the command that
    the whole harness runs in.
    """

    def __init__(self) -> None:
        self._since = 0.0
        self._seen: deque[_Seen] = deque(maxlen=RESULTS)

    def answered(self, call: ModelCall) -> None:
        """A call was just recorded; a streamed one may have been acted upon since its first token."""
        times = call.timings
        arrived = monotonic() - times.total_s
        self._since = max(self._since, arrived + times.waited_s + (times.first_token_s or 0.0))
        kept = [seen for seen in self._seen if seen.began >= self._since]
        self._seen = deque(kept, maxlen=RESULTS)

    def add_result(self, name: str, result: ToolResult, *, began: float) -> None:
        """A tool gave a result; `began` is when it was called, on the monotonic clock."""
        self._add(name, "\n".join(_words(part) for part in result.content), began)

    def add_exec(self, result: ExecResult, *, began: float) -> None:
        """A command ended."""
        end = f"\n[exit code {result.exit_code}]" if result.exit_code else ""
        if result.timed_out:
            end = f"\n[ran past its limit of {result.limit_s or 0:g} s]"
        self._add("exec", result.text, began, end)

    def kept_in(self, trajectory: Trajectory) -> Trajectory:
        """The trajectory with these results among its messages and named as its last observations."""
        messages = [_message(seen) for seen in self._seen]
        if not messages or not trajectory.calls:
            return trajectory
        named = {content_hash(message.raw): message for message in messages}
        return trajectory.model_copy(
            update={
                "messages": {**named, **trajectory.messages},
                "last_observations": tuple(content_hash(message.raw) for message in messages),
            }
        )

    def _add(self, name: str, text: str, began: float, end: str = "") -> None:
        if began >= self._since:
            self._seen.append(_Seen(began=began, name=name, content=excerpt(text, RESULT_LIMIT) + end))


class ObservedTool(ToolWrapper):
    """A task's tool whose results and faults are noted, called by whichever way. Honours
    `orchard_core.Tool`, but raises errors of the tree only."""

    def __init__(self, tool: Tool, results: LastResults, ending: ToolEnding) -> None:
        super().__init__(tool)
        self._results = results
        self._ending = ending

    async def call(self, args: Mapping[str, JsonValue]) -> ToolResult:
        """See Tool. Whatever is no fault of the machinery is the task's: TaskInvalid."""
        began = monotonic()
        try:
            result = await self._tool.call(args)
        except (Exception, SystemExit) as error:  # border: foreign code
            fault = _named(self._tool.name, error)
            self._ending.failed(fault)
            raise fault from error
        self._results.add_result(self._tool.name, result, began=began)
        if result.ends:
            self._ending.ended(result)
        return result


def observed_tools(tools: Iterable[Tool], results: LastResults, ending: ToolEnding) -> Sequence[Tool]:
    """The same tools, noted."""
    return [ObservedTool(tool, results, ending) for tool in tools]


def _named(name: str, error: Exception | SystemExit) -> OrchardError:
    if isinstance(error, OrchardError) and not isinstance(error, (ExecError, FileError)):
        return error
    message = f"the task's tool {name} raised {type(error).__name__}: {error}"
    return TaskInvalid(message, hint="mend the task set")


def _words(part: Content) -> str:
    if isinstance(part, Text):
        return part.text
    return f"[{part.media_type}, {len(part.data)} bytes]"


def _message(seen: _Seen) -> Message:
    fields = {"role": "tool", "name": seen.name, "content": seen.content}
    return Message(role="tool", raw=json.dumps(fields, separators=(",", ":")))
