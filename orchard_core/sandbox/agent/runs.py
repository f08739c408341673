"""Every run of an agent by its id, whoever started it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from orchard_core.sandbox.agent import read
from orchard_core.sandbox.agent.link import CALL_S, AgentLink
from orchard_core.sandbox.agent.process import AgentProcess
from orchard_core.sandbox.agent.told import RunTold, told
from orchard_core.sandbox.agent.understood import understood

OUTPUT_MAX = 8 << 20
"""Bytes of one piece of output; an agent gives 4 MiB at most."""
_RUNS_MAX = 4 << 20
"""Bytes of JSON that tell of all runs: some hundreds, each with a note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutput:
    """A piece of a run's output."""

    data: bytes
    """The bytes; empty when there were none in time."""
    start: int
    """Where they begin; after the cursor that was asked for when the bytes between are no longer kept."""
    size: int
    """Bytes of the whole output so far, kept or not."""
    ended: bool
    """No more follow these."""

    @property
    def cursor(self) -> int:
        """Where the next piece begins."""
        return self.start + len(self.data)


class AgentRuns:
    """The calls by which a driver that has lost its memory finds its commands again."""

    def __init__(self, link: AgentLink) -> None:
        self._link = link

    async def runs(self, *, lane: str | None = None, limit: int | None = None) -> list[RunTold]:
        """The newest known runs in the order of their arrival, without outputs; of one lane, if given. What
        ended long ago is forgotten."""
        query = {"lane": lane, "limit": limit}
        said = await self._link.ask("GET", "/v1/exec", query, repeat=True, limit=_RUNS_MAX)
        with understood():
            return [told(status, b"") for status in said["runs"]]

    async def run_status(self, run_id: str, wait_s: float = 0.0) -> RunTold:
        """How a run stands, after waiting up to `wait_s` for its end (60 at most); what it said too, when it
        has ended. Raises ExecError when there is none, ExecForgotten when it is long over."""
        return await AgentProcess(self._link, run_id).told(wait_s)

    async def run_output(
        self,
        run_id: str,
        stream: Literal["stdout", "stderr"] = "stdout",
        *,
        cursor: int = 0,
        wait_s: float = 0.0,
    ) -> RunOutput:
        """What a run said from `cursor` on, at once when there is any, else after at most `wait_s` seconds.
        Raises as `run_status`."""
        query = {"stream": stream, "cursor": cursor, "wait": wait_s}
        headers, data = await self._link.call(
            "GET", f"/v1/exec/{run_id}/output", query, repeat=True, patience=wait_s + CALL_S, limit=OUTPUT_MAX
        )
        with understood():
            start = read.count(int(headers["x-orchard-cursor"]))
            size = read.count(int(headers["x-orchard-size"]))
        return RunOutput(data=data, start=start, size=size, ended="x-orchard-end" in headers)
