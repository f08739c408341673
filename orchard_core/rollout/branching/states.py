"""States of a rollout to continue from: one pass through it, with the sandbox saved on the way."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

from orchard_core.errors import SandboxError
from orchard_core.rollout.branching.model import ReplayingModel
from orchard_core.rollout.branching.operations import Operation, Recorder
from orchard_core.rollout.branching.recorded import Recording
from orchard_core.rollout.branching.replay import Replay
from orchard_core.rollout.branching.running import Pass, run_pass
from orchard_core.rollout.branching.world import LoggedProvider, LoggedTaskSet
from orchard_core.rollout.parts import RolloutParts
from orchard_core.sandbox.contract import Sandbox
from orchard_core.types.rollout import Rollout
from orchard_core.types.sandbox import Snapshot

_COUNT = "set -- /proc/[0-9]*; echo $#"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A rollout before one of its calls."""

    snapshot: Snapshot | None = None
    """The sandbox's files; None: they could not be had."""
    operations: Sequence[Operation] = ()
    """All that was done until then."""
    tools: bool = False
    """A tool of the task's was called by then, which may keep a state of its own."""
    reason: str = ""
    """Why there is no snapshot."""


async def save_states(
    rollout: Rollout,
    recording: Recording,
    calls: Collection[int],
    parts: RolloutParts,
    model: ReplayingModel,
    *,
    taken: list[Snapshot],
) -> dict[int, State]:
    """Replay the whole rollout once, and save the sandbox before each of these calls; states by call.

    Every snapshot is put on `taken` at once, whatever comes of it. Raises ConfigError, SandboxUnsupported.
    """
    saving = _Saving(recording, calls, taken)
    ended = await run_pass(saving.as_pass(rollout, parts), rollout, parts, model)
    why = saving.replay.difference or saving.recorder.lost
    if ended is not None:
        why = why or f"the replay ended as {ended.outcome} before it came there"
    lost = State(reason=why or "the replay did not come there")
    return {call: saving.states.get(call, lost) for call in calls}


class _Saving:
    """The pass on its way."""

    def __init__(self, recording: Recording, calls: Collection[int], taken: list[Snapshot]) -> None:
        self._order = [recorded.call.index for recorded in recording.calls]
        self._wanted = frozenset(calls)
        self._taken = taken
        self.recorder = Recorder()
        self.replay = Replay(recording, until=None, on_call=self._recognised)
        self.states: dict[int, State] = {}
        self._sandbox: Sandbox | None = None
        self._processes: int | None = None
        self._tools = False
        self._pending: dict[int, State] = {}

    def as_pass(self, rollout: Rollout, parts: RolloutParts) -> Pass:
        """To be run."""
        return Pass(
            name=f"{rollout.id}/base",
            replay=self.replay,
            seed=rollout.seed,
            before_call=self._held,
            provider=LoggedProvider(parts.provider, self.recorder, made=self._made),
            taskset=LoggedTaskSet(parts.taskset, self.recorder, on_tool=self._tool_called),
        )

    def _made(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def _tool_called(self) -> None:
        self._tools = True

    async def _held(self, _session: str, index: int) -> None:
        """Before the call of this index in the session: save the sandbox when it is expected to be wanted."""
        assert self._sandbox is not None
        if self.recorder.lost:  # nor can any later one
            self.replay.over.set()
            return
        if self._processes is None:
            self._processes = await _processes(self._sandbox)
        if index >= len(self._order) or self._order[index] not in self._wanted:
            return
        reason = await self._unsaved(self._sandbox)
        if reason:
            self._pending[index] = State(reason=reason)
            return
        try:
            snapshot = await self._sandbox.snapshot()
        except SandboxError as error:
            self._pending[index] = State(reason=f"no snapshot could be taken: {error.message}")
            return
        self._taken.append(snapshot)
        done = self.recorder.operations
        self._pending[index] = State(snapshot=snapshot, operations=tuple(done), tools=self._tools)

    async def _unsaved(self, sandbox: Sandbox) -> str:
        """What a snapshot of files would not hold."""
        if self.recorder.in_flight:
            return "something was still going on in the sandbox"
        if not sandbox.capabilities.isolated:
            return ""
        now = await _processes(sandbox)
        if now is None or self._processes is None:
            return "its processes cannot be counted"
        return "" if now <= self._processes else "a process was left running in the sandbox"

    def _recognised(self, call: int, index: int) -> None:
        """It is known now which call it was."""
        state = self._pending.pop(index, None)
        if state is not None and self._order[index] == call:
            whole = state.snapshot is None or len(state.operations) == len(self.recorder.operations)
            moved = State(reason="something went on in the sandbox while it was saved")
            self.states[call] = state if whole else moved
        if self.states.keys() >= self._wanted:
            self.replay.over.set()


async def _processes(sandbox: Sandbox) -> int | None:
    """How many there are inside, the asking one included; None: that cannot be told."""
    with suppress(SandboxError, ValueError):
        return int((await sandbox.exec(_COUNT, cwd="/", timeout=10)).stdout_text)
    return None
