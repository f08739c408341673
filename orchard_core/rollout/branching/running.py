"""Running one replayed rollout, to its end or until nothing more is to be had of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from orchard_core.gateway.contract import BeforeCall
from orchard_core.reward.blobs import MemoryBlobs
from orchard_core.rollout.attempt import run_rollout
from orchard_core.rollout.branching.model import ReplayingModel
from orchard_core.rollout.branching.replay import Replay
from orchard_core.rollout.branching.world import LoggedProvider, LoggedTaskSet, ReplayGateway
from orchard_core.rollout.parts import RolloutParts
from orchard_core.types.rollout import Rollout


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One replay of a recorded rollout."""

    name: str
    """Unique among those that run at once."""
    replay: Replay
    """Its recorded answers."""
    seed: int
    """Of everything that draws once the recording is left."""
    before_call: BeforeCall | None = None
    """Awaited before each call."""
    provider: LoggedProvider | None = None
    """Where its sandbox comes from; None: the run's own provider, and everything is done anew."""
    taskset: LoggedTaskSet | None = None
    """Likewise."""


async def run_pass(one: Pass, rollout: Rollout, parts: RolloutParts, model: ReplayingModel) -> Rollout | None:
    """The rollout that came of it; None when it was ended before, as its replay is over.

    Raises ConfigError and SandboxUnsupported, as `run_rollout` does. Ends everything when it is cancelled.
    """
    gateway = ReplayGateway(parts.gateway, model, one.replay, name=one.name, before_call=one.before_call)
    replayed = replace(
        parts,
        model=model,
        gateway=gateway,
        provider=one.provider or parts.provider,
        taskset=one.taskset or parts.taskset,
        blobs=MemoryBlobs(),
        limits=rollout.limits,
    )
    work = asyncio.create_task(
        run_rollout(rollout.task, replayed, attempt=rollout.attempt, seed=one.seed, tries=rollout.tries)
    )
    over = asyncio.create_task(one.replay.over.wait())
    try:
        await asyncio.wait({work, over}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        over.cancel()
        if not work.done():
            work.cancel()
            await asyncio.wait({work})
    return None if work.cancelled() else work.result()
