"""The loop: ask, act, observe, until something stops it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from orchard_core import (
    BudgetExceeded,
    ContextExceeded,
    HarnessResult,
    Limits,
    OrchardError,
    StopReason,
    TaskInvalid,
    Tool,
    ToolResult,
)
from orchard_harness_react.calls import Arguments, Malformed, checked
from orchard_harness_react.chat import Chat
from orchard_harness_react.config import ReactConfig
from orchard_harness_react.content import cut_result, utf8, without_old_images
from orchard_harness_react.own_tools import OwnToolOffer
from orchard_harness_react.protocol import Answer, Call, Done, Message, Protocol

_WAS_CUT = " Your answer was cut off at its token limit: do less in one turn."


class Stopped(Exception):
    """The episode is over."""

    def __init__(self, reason: StopReason, message: str = "", *, answer: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.answer = answer


class Episode:
    """One task's conversation. It only ever grows at its end, so every call continues the one before."""

    def __init__(
        self, *, config: ReactConfig, chat: Chat, protocol: Protocol, tools: Sequence[Tool], limits: Limits
    ) -> None:
        self._config = config
        self._chat = chat
        self._protocol = protocol
        self._tools = {tool.name: tool for tool in tools}
        self._limits = limits
        self._messages: list[Message] = []
        self._turns = 0
        self._malformed = 0
        self._malformed_in_row = 0
        self._acted_s = 0.0

    async def run(self, system: str, instruction: str) -> HarnessResult:
        """From the first question to the end. Raises ModelError and SandboxError untouched."""
        self._messages = [Message.of("system", system), Message.of("user", instruction)]
        try:
            while True:
                await self._turn()
        except Stopped as stop:
            return self._result(stop)
        except BudgetExceeded as error:
            return self._result(Stopped(StopReason.BUDGET, str(error)))
        except ContextExceeded as error:
            return self._result(Stopped(StopReason.CONTEXT_LIMIT, str(error)))

    async def _turn(self) -> None:
        if self._limits.turns is not None and self._turns >= self._limits.turns:
            raise Stopped(StopReason.TURN_LIMIT, f"all {self._limits.turns} turns are used")
        answer = await self._chat.ask(self._shown())
        self._messages.append(answer.message)
        self._turns += 1
        calls = self._protocol.calls(answer)
        if calls:
            await self._act(calls, answer)
        else:
            self._no_call(answer)

    def _shown(self) -> Sequence[Message]:
        keep = self._config.keep_images
        return self._messages if keep is None else without_old_images(self._messages, keep)

    async def _act(self, calls: Sequence[Call], answer: Answer) -> None:
        done: list[Done] = []
        problems: list[str] = []
        for call in calls:
            try:
                result = await self._perform(call)
            except Malformed as error:
                problems.append(f"{error}{_WAS_CUT if answer.finish == 'length' else ''}")
                result = ToolResult.text(problems[-1], is_error=True)
            done.append(Done(call=call, result=cut_result(result, self._config.observation_limit)))
        self._messages.extend(self._protocol.results(done))
        self._count(problems, understood=len(problems) < len(calls))

    async def _perform(self, call: Call) -> ToolResult:
        """Raises Malformed for a call that cannot be carried out, Stopped when it ended the episode."""
        tool, arguments = checked(call, self._tools)
        left = self._time_left()
        began = time.monotonic()
        try:
            async with asyncio.timeout(left) as clock:
                result = await _called(tool, arguments)
        except TimeoutError as error:
            if not clock.expired():
                raise
            raise Stopped(StopReason.BUDGET, f"the wall clock ran out while {tool.name} ran") from error
        finally:
            self._acted_s += time.monotonic() - began
        if result.ends:
            raise Stopped(StopReason.SUBMITTED, answer=result.answer)
        return result

    def _time_left(self) -> float | None:
        """Seconds that tools may still take. Time with the model is the gateway's to charge, which knows
        how much of it was waiting; when it has run out, the gateway refuses the next call."""
        limit = self._limits.wall_clock_s
        return None if limit is None else max(limit - self._acted_s, 0.0)

    def _no_call(self, answer: Answer) -> None:
        was_cut = answer.finish == "length"
        if "submit" not in self._tools and not was_cut:
            said = answer.text.rpartition("</think>")[2].strip()
            raise Stopped(StopReason.ANSWERED, answer=utf8(said))
        ending = " When everything is done, call submit." if "submit" in self._tools else ""
        problem = (
            f"Your answer called no tool. {self._protocol.how_to_call()}{ending}{_WAS_CUT if was_cut else ''}"
        )
        self._messages.append(Message.of("user", problem))
        self._count([problem], understood=False)

    def _count(self, problems: Sequence[str], *, understood: bool) -> None:
        """Raises Stopped at too many answers in a row that held nothing to carry out."""
        self._malformed += len(problems)
        self._malformed_in_row = 0 if understood else self._malformed_in_row + 1
        if self._malformed_in_row >= self._config.malformed_limit:
            raise Stopped(
                StopReason.MALFORMED,
                f"{self._malformed_in_row} malformed answers in a row; the last: {problems[-1]}",
            )

    def _result(self, stop: Stopped) -> HarnessResult:
        return HarnessResult(
            stop=stop.reason,
            answer=stop.answer,
            turns=self._turns,
            malformed_calls=self._malformed,
            message=utf8(stop.message),
        )


async def _called(tool: Tool, arguments: Arguments) -> ToolResult:
    """The border to a task's tools, which are foreign code: whatever else they raise is the task's fault."""
    try:
        return await tool.call(arguments)
    except OrchardError:
        raise
    except Exception as error:
        if isinstance(tool, OwnToolOffer):
            raise
        raise TaskInvalid(
            f"the task's tool {tool.name} raised {type(error).__name__}: {error}", hint="mend the task set"
        ) from error
