"""Branches of one rollout."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from contextlib import suppress

from orchard_core.errors import CreditRefused, SandboxError, SandboxUnsupported
from orchard_core.rollout.branching.branch import Branch, BranchMode, origin_of
from orchard_core.rollout.branching.model import ReplayingModel
from orchard_core.rollout.branching.operations import Answerer
from orchard_core.rollout.branching.recorded import Recording, Same
from orchard_core.rollout.branching.replay import Replay
from orchard_core.rollout.branching.running import Pass, run_pass
from orchard_core.rollout.branching.states import State, save_states
from orchard_core.rollout.branching.world import LoggedProvider, LoggedTaskSet
from orchard_core.rollout.grading import VERIFIED
from orchard_core.rollout.identity import digest
from orchard_core.rollout.parts import RolloutParts
from orchard_core.rollout.text import excerpt
from orchard_core.types.model import Usage
from orchard_core.types.rollout import Attribution, Rollout
from orchard_core.types.sandbox import Snapshot

REASON_CHARS = 500
"""A longer reason is cut."""


def branch_seed(seed: int, *, rollout: str, turn: int, number: int) -> int:
    """31 bits, the same whenever the branch is run."""
    return int(digest("branch", str(seed), rollout, str(turn), str(number))[:8], 16) >> 1


class Brancher:
    """Runs branches of one rollout, several at once. Use it as an async context manager."""

    def __init__(
        self,
        rollout: Rollout,
        parts: RolloutParts,
        model: ReplayingModel,
        *,
        mode: BranchMode | None = None,
        same: Same = Same.EXACT,
        seed: int = 0,
        keep: bool = False,
    ) -> None:
        """`model` stands for the parts' model in all branches; `mode` None chooses for each turn; `same`
        says when a request is the recorded one; `keep` puts
        whole rollouts into the branches. Raises CreditRefused, RecordCorrupt."""
        check_harness(parts)
        self._rollout = rollout
        self._parts = parts
        self._model = model
        self._mode = mode
        self._seed = seed
        self._keep = keep
        self._recording = Recording.of(rollout.trajectory, same=same)
        self._states: dict[int, State] = {}
        self._taken: list[Snapshot] = []
        if not self.turns:
            raise CreditRefused(
                f"rollout {rollout.id} has no answer to branch from", hint="its model never answered"
            )

    @property
    def turns(self) -> int:
        """T: answers of the main conversation."""
        return len(self._recording.turns)

    @property
    def snapshots(self) -> Sequence[Snapshot]:
        """What was saved and not yet given back."""
        return tuple(self._taken)

    async def prepare(self, turns: Collection[int]) -> None:
        """Save the sandbox before these turns, in one pass, unless everything is to be done again. What was
        saved for other turns is given back, as every state takes as much room as the rollout wrote.

        Raises ConfigError, and SandboxUnsupported when restoring was asked for and the provider cannot.
        """
        await self._give_back()
        if self._mode is BranchMode.RERUN:
            return
        if not (await self._parts.provider.capabilities()).snapshot:
            if self._mode is BranchMode.RESTORE:
                raise SandboxUnsupported(
                    f"the provider {self._parts.provider.name} takes no snapshots",
                    hint="leave --option state=restore away, or run with --sandbox local",
                )
            return
        calls = [self._recording.turns[turn] for turn in sorted(turns)]
        self._states = await save_states(
            self._rollout, self._recording, calls, self._parts, self._model, taken=self._taken
        )

    def mode(self, turn: int) -> BranchMode:
        """How a branch from this turn comes to its state."""
        if self._mode is not None:
            return self._mode
        state = self._states.get(self._recording.turns[turn])
        saved = state is not None and state.snapshot is not None and not state.tools
        return BranchMode.RESTORE if saved else BranchMode.RERUN

    async def branch(self, turn: int, number: int) -> Branch:
        """Run one. Whatever befalls it is in the result.

        Raises ConfigError and SandboxUnsupported, which every branch would meet.
        """
        began = time.monotonic()
        seed = branch_seed(self._seed, rollout=self._rollout.id, turn=turn, number=number)
        made = Branch(
            rollout=self._rollout.id,
            origin=origin_of(self._rollout),
            turn=turn,
            number=number,
            seed=seed,
            mode=self.mode(turn),
        )
        one = self._pass(made)
        if one is None:
            state = self._states.get(self._recording.turns[turn], State(reason="no state was saved there"))
            return made.model_copy(update={"invalid": state.reason})
        ended = await run_pass(one, self._rollout, self._parts, self._model)
        done = self._judged(made, one.replay, ended)
        return done.model_copy(update={"duration_s": time.monotonic() - began})

    def _pass(self, branch: Branch) -> Pass | None:
        call = self._recording.turns[branch.turn]
        name = f"{branch.rollout}/{branch.turn}/{branch.number}"
        if branch.mode is BranchMode.RERUN:
            return Pass(name=name, replay=Replay(self._recording, until=call), seed=branch.seed)
        state = self._states.get(call)
        if state is None or state.snapshot is None:
            return None

        def on_call(recorded: int, _index: int) -> None:
            if recorded == call:
                answerer.go_live()

        replay = Replay(self._recording, until=call, on_call=on_call)
        answerer = Answerer(state.operations, replay.note)
        return Pass(
            name=name,
            replay=replay,
            seed=branch.seed,
            provider=LoggedProvider(self._parts.provider, answerer, restore=state.snapshot),
            taskset=LoggedTaskSet(self._parts.taskset, answerer, on_tool=lambda: None),
        )

    def _judged(self, branch: Branch, replay: Replay, ended: Rollout | None) -> Branch:
        if ended is None or replay.difference:
            why = replay.difference or "it was given up"
            return branch.model_copy(update={"invalid": excerpt(why, REASON_CHARS)})
        own = [
            call
            for call in ended.trajectory.calls
            if replay.live_from is not None and call.index >= replay.live_from
        ]
        costs = [call.cost_usd for call in own if call.cost_usd is not None]
        reward, invalid = score_of(ended)
        if replay.live_from is None:
            reward, invalid = None, f"it ended as {ended.outcome} before it came to the turn"
        named = ended.model_copy(update={"id": f"{ended.id}-{branch.turn}-{branch.number}"})
        return branch.model_copy(
            update={
                "reward": reward,
                "invalid": excerpt(invalid, REASON_CHARS),
                "outcome": ended.outcome,
                "attribution": ended.attribution,
                "answers": sum(call.response is not None for call in own),
                "usage": sum((call.usage for call in own), Usage()),
                "cost_usd": sum(costs) if len(costs) == len(own) else None,
                "record": named if self._keep else None,
            }
        )

    async def close(self) -> None:
        """Give back the snapshots."""
        await self._give_back()

    async def _give_back(self) -> None:
        self._states = {}
        while self._taken:
            with suppress(SandboxError):
                await self._parts.provider.discard(self._taken.pop())

    async def __aenter__(self) -> Brancher:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


def check_harness(parts: RolloutParts) -> None:
    """Raises CreditRefused for a harness that recorded answers do not replay."""
    if not parts.harness.capabilities.replayable:
        raise CreditRefused(
            f"harness {parts.harness.name} cannot be replayed: its state is more than its conversation, so "
            "recorded answers do not bring it back to where it was",
            hint="measure rollouts of react, miniswe or openhands, or judge these: --estimator judge",
        )


def score_of(ended: Rollout) -> tuple[float | None, str]:
    """The score, or why there is none. Without a score by the agent's own doing, it has not passed: 0."""
    if ended.score is not None and ended.outcome in VERIFIED:
        return ended.score, ""
    if ended.attribution is Attribution.AGENT:
        return 0.0, ""
    why = ended.error.message if ended.error else "no score"
    return None, f"it ended as {ended.outcome}: {why}"
