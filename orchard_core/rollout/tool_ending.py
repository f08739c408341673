"""What a task's tools decide about a run, the same however the harness calls them: itself, by MCP or by the
command-line client."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from orchard_core.rollout.deadline import contained, within
from orchard_core.rollout.settings import PhaseLimits
from orchard_core.types.harness import HarnessResult, StopReason
from orchard_core.types.tool import ToolResult

_LOG = logging.getLogger("orchard.rollout")


class ToolEnding:
    """Hears of the result that ends the episode, and of the first exception of a tool."""

    def __init__(self) -> None:
        self.result: ToolResult | None = None
        """The result with `ends`."""
        self.fault: Exception | None = None
        """What a tool raised; it decides the outcome, whatever the harness made of it."""
        self._over = asyncio.Event()

    def ended(self, result: ToolResult) -> None:
        """A tool said that the episode ends; the first one counts."""
        self.result = self.result or result
        self._over.set()

    def failed(self, error: Exception) -> None:
        """A tool raised; the first one counts."""
        self.fault = self.fault or error
        self._over.set()

    async def followed(
        self, run: Coroutine[Any, Any, object], *, answers: Callable[[], int], limits: PhaseLimits
    ) -> object:
        """Run a harness, and end it once a tool has decided. Raises what it raises, and the tool's fault.

        It has `ending_s` to end by itself, then it is cancelled and has `cancel_s`. `answers` counts the
        model's, for a harness that did not say how many turns it took.
        """
        work = asyncio.ensure_future(contained(run, "agent"))
        over = asyncio.ensure_future(self._over.wait())
        try:
            await asyncio.wait({work, over}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.wait({work})
            raise
        finally:
            over.cancel()
        if not self._over.is_set():
            return _counted(await work, answers)
        said = await _last_words(work, limits)
        if self.fault is not None:
            raise self.fault
        assert self.result is not None
        return _submitted(self.result, said, answers)


async def _last_words(work: asyncio.Future[object], limits: PhaseLimits) -> HarnessResult | None:
    """What the harness still reported. The run is decided, so nothing that it raises now matters."""
    try:
        end = _result(work)
        said = await within("the harness's end", limits.ending_s, end, grace_s=limits.cancel_s)
    except Exception as error:  # noqa: BLE001 - border: harnesses are foreign code
        _LOG.debug("after its tool ended the run, the harness raised: %s", error)
        return None
    return said if isinstance(said, HarnessResult) else None


async def _result(work: asyncio.Future[object]) -> object:
    return await work


def _counted(result: object, answers: Callable[[], int]) -> object:
    """The model's answers stand for the turns of a harness that cannot tell how many it took."""
    if not isinstance(result, HarnessResult) or result.turns:
        return result
    return result.model_copy(update={"turns": answers()})


def _submitted(final: ToolResult, said: HarnessResult | None, answers: Callable[[], int]) -> HarnessResult:
    said = said or HarnessResult(stop=StopReason.SUBMITTED)
    update = {"stop": StopReason.SUBMITTED, "answer": final.answer, "turns": said.turns or answers()}
    return said.model_copy(update=update)
