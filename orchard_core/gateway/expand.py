"""Full requests of a trajectory, whose calls are stored as changes to earlier ones."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import TypeVar

from orchard_core.errors import RecordCorrupt
from orchard_core.types.model import ModelCall
from orchard_core.types.trajectory import Trajectory

T = TypeVar("T")


def conversations(trajectory: Trajectory) -> dict[int, tuple[str, ...]]:
    """Content hashes of each call's messages, by call index. Raises RecordCorrupt."""
    full: dict[int, tuple[str, ...]] = {}
    for call in trajectory.calls:
        refs = call.messages
        shared = () if refs.base is None else _earlier(full, call, refs.base)[: refs.keep]
        full[call.index] = shared + refs.added
    return full


def prompts(trajectory: Trajectory) -> dict[int, array[int]]:
    """Ids of each call's prompt, by call index; calls without ids are left out. Raises RecordCorrupt."""
    full: dict[int, array[int]] = {}
    answered: dict[int, array[int]] = {}
    for call in trajectory.calls:
        refs = call.prompt_tokens
        if refs is None:
            continue
        shared = array("q") if refs.base is None else _earlier(answered, call, refs.base)[: refs.keep]
        full[call.index] = shared + array("q", refs.added)
        answered[call.index] = full[call.index] + array("q", call.completion_tokens or ())
    return full


def _earlier(full: Mapping[int, T], call: ModelCall, base: int) -> T:
    if base not in full:
        raise RecordCorrupt(
            f"call {call.index} builds on call {base}, which the trajectory does not hold before it",
            hint="do not take single calls out of a trajectory: filter its samples or turns",
        )
    return full[base]
