"""Recorded rollouts of one small task, and the parts to continue them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from orchard_core import Rollout, SandboxProvider
from orchard_core.gateway.scripted import Conversation, Reply, ReplyCall, ScriptedModel
from orchard_core.rollout.attempt import run_rollout
from orchard_core.rollout.branching.branch import BranchMode
from orchard_core.rollout.branching.brancher import Brancher
from orchard_core.rollout.branching.model import ReplayingModel
from orchard_core.rollout.branching.recorded import Same
from orchard_core.rollout.parts import RolloutParts

from ..attempts import the_task

TRAIL = ("echo one >> trail; cat trail", "echo two >> trail; cat trail", "printf 1 > answer.txt")
"""A way to the wrong answer, which is 0."""


def saying(commands: Sequence[str], *, name: str = "scripted") -> ScriptedModel:
    """A model that runs these commands, one an answer, and ends; its place is read off the conversation."""

    def answer(conversation: Conversation) -> Reply:
        done = len(conversation.answers)
        return Reply(text="that is all") if done >= len(commands) else bash(commands[done], done)

    return ScriptedModel(answer, name=name)


def bash(command: str, place: int) -> Reply:
    return Reply(calls=(ReplyCall(name="bash", arguments={"command": command}, id=f"call_{place}"),))


async def recorded(parts: RolloutParts, commands: Sequence[str] = TRAIL) -> Rollout:
    """The task's rollout by a model that runs these commands."""
    made = replace(parts, model=saying(commands))
    return await run_rollout(the_task(made), made)


def branching(
    rollout: Rollout, parts: RolloutParts, *, mode: BranchMode | None = None, same: Same = Same.EXACT
) -> Brancher:
    return Brancher(rollout, parts, ReplayingModel(parts.model), mode=mode, same=same, keep=True)


def commands_of(provider: SandboxProvider, place: int = -1) -> list[str]:
    """What really ran in the sandbox that was made at this place."""
    return [str(command) for command in provider.created[place].commands]  # type: ignore[attr-defined]
