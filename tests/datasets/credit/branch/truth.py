"""The true value of a state of a task that the noisy oracle plays, by dynamic programming.

The oracle is a Markov policy over (next step of the known solution, steps left out so far). How a task ends
depends on the steps that were played alone, as its detours do no harm; the real verifier scores each such
end, once.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field, replace

from orchard_core import Rollout, Task
from orchard_core.gateway.scripted import ScriptedModel
from orchard_core.gateway.scripted.conversation import Conversation, calls_of
from orchard_core.gateway.scripted.interface import Interface
from orchard_core.gateway.scripted.noise import MISTAKES, Did, Progress
from orchard_core.gateway.scripted.plan import Move, gold_moves, rendered
from orchard_core.gateway.scripted.reply import Reply
from orchard_core.gateway.turns import turns
from orchard_core.rollout.attempt import run_rollout
from orchard_core.rollout.parts import RolloutParts

_ALL = sum(MISTAKES.values())
EARLY, SKIPPED = MISTAKES["early_submit"] / _ALL, MISTAKES["skipped_step"] / _ALL
"""Of all mistakes; the others cost a turn and nothing else."""

Steps = frozenset[int]
"""Places of steps in the known solution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A state of the policy and of the task's files."""

    progress: Progress
    """Where the policy is."""
    skipped: Steps
    """Steps before it that were not played."""


@dataclass(slots=True, kw_only=True)
class Truth:
    """True values of the states of one task."""

    task: Task
    """The task."""
    parts: RolloutParts
    """What plays and scores it."""
    rate: float
    """The oracle's rate of mistakes."""
    rooms: asyncio.Semaphore
    """Bounds the rollouts that run at once."""
    _ends: dict[Steps, asyncio.Task[float]] = field(default_factory=dict)

    @property
    def _steps(self) -> tuple[Move, ...]:
        solution = self.parts.taskset.solution(self.task)
        assert solution is not None
        return gold_moves(solution, thoughts=True)

    async def value(self, state: State) -> float:
        """V: the expected score from here."""
        place, last, count = state.progress.place, state.progress.last, len(self._steps) - 1
        if last is Did.END:
            return await self.end(state.skipped | set(range(place, count)))
        if place >= count:
            return await self.end(state.skipped)
        after = await self._next(place + 1, state.skipped)
        if last is Did.DETOUR:
            return after
        early = await self.end(state.skipped | set(range(place, count)))
        skipped = await self._next(place + 1, state.skipped | {place})
        wrong = self.rate * (EARLY * early + SKIPPED * skipped)
        return wrong + (1.0 - self.rate * (EARLY + SKIPPED)) * after

    async def _next(self, place: int, skipped: Steps) -> float:
        return await self.value(State(progress=Progress(place=place), skipped=skipped))

    async def end(self, skipped: Steps) -> float:
        """What the real verifier says once all steps but these were played."""
        if skipped not in self._ends:
            self._ends[skipped] = asyncio.create_task(self._scored(skipped))
        return await self._ends[skipped]

    async def _scored(self, skipped: Steps) -> float:
        async with self.rooms:
            rollout = await run_rollout(self.task, replace(self.parts, model=self._playing(skipped)))
        assert rollout.score is not None
        return rollout.score

    def _playing(self, skipped: Steps) -> ScriptedModel:
        steps = self._steps
        moves = [move for place, move in enumerate(steps) if place not in skipped]

        def answer(conversation: Conversation) -> Reply:
            done = min(len(conversation.answers), len(moves) - 1)
            return rendered(moves[done], f"call_{done}", Interface.of(conversation))

        return ScriptedModel(answer)

    def states(self, rollout: Rollout) -> list[State]:
        """[T] Before each answer of a rollout of the oracle's, as its call ids tell."""
        progress, played = Progress(place=0), set[int]()
        found = []
        for turn in turns(rollout.trajectory):
            skipped = frozenset(range(progress.place)) - played
            found.append(State(progress=progress, skipped=skipped))
            assert turn.call.response is not None
            message = json.loads(rollout.trajectory.messages[turn.call.response].raw)
            (call_id, _, _), *_ = calls_of(message)
            place, did = int(call_id[5:9]), Did(int(call_id[9:]))
            played |= {place} if did is Did.STEP else set()
            progress = Progress(place=place + (did is Did.STEP), last=did)
        return found
