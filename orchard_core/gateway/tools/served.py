"""A session's task tools as programs call them: one at a time, in the order they arrive."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from orchard_core.gateway.tools.peers import Peers
from orchard_core.tasks.contract import Tool
from orchard_core.types.tool import ToolResult

CLOSE_S = 5.0
"""How long a closing session waits for its tool calls to end, seconds."""
ENDED = "the episode has ended: no further call is served"
BROKE = "the tool {name} broke down; that is no fault of yours, and the episode is over"
"""What a program hears of a tool's own exception. The details may name the host's files: they are for the
rollout's record alone."""

_log = logging.getLogger("orchard.gateway.tools")


class ServedTools:
    """Runs the calls of one session.

    They take turns: a task's tools share its state, most are not written for two calls at once, and the
    audit is one history whichever way a harness calls.
    """

    def __init__(self, tools: Sequence[Tool] = ()) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._turn = asyncio.Lock()
        self._open: set[asyncio.Task[ToolResult]] = set()
        self.peers = Peers()
        self.over = ""
        """Why nothing more is served, in words; empty while calls are taken."""

    @property
    def tools(self) -> Sequence[Tool]:
        """All of them, as the task ordered them."""
        return list(self._tools.values())

    def knows(self, name: str) -> bool:
        """There is a tool of this name."""
        return name in self._tools

    def start(self, name: str, arguments: Mapping[str, JsonValue]) -> asyncio.Task[ToolResult]:
        """Queue a call of a known tool. Its result says what went wrong, if anything; it raises only when it
        is cancelled, which ends the call."""
        work = asyncio.create_task(self._call(self._tools[name], arguments))
        self._open.add(work)
        work.add_done_callback(self._open.discard)
        return work

    async def close(self) -> None:
        """End the calls in flight and take no more."""
        self.over = self.over or ENDED
        open_calls = list(self._open)
        for work in open_calls:
            work.cancel()
        if open_calls:
            await asyncio.wait(open_calls, timeout=CLOSE_S)

    async def _call(self, tool: Tool, arguments: Mapping[str, JsonValue]) -> ToolResult:
        async with self._turn:
            if self.over:
                return ToolResult.text(self.over, is_error=True)
            try:
                result = await tool.call(arguments)
            except Exception:  # noqa: BLE001 - border: tools are foreign code; the rollout noted what it was
                _log.debug("tool %s raised", tool.name, exc_info=True)
                self.over = BROKE.format(name=tool.name)
                return ToolResult.text(self.over, is_error=True)
            if result.ends:
                self.over = ENDED
            return result


async def settled(work: asyncio.Task[ToolResult]) -> ToolResult | None:
    """A call's result, None when it was cancelled. Whoever is cancelled while waiting cancels the call."""
    try:
        await asyncio.wait({work})
    except asyncio.CancelledError:
        work.cancel()
        raise
    return None if work.cancelled() else work.result()
