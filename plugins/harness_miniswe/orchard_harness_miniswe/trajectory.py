"""mini-swe-agent's own record of a run, a `.traj.json` of the format mini-swe-agent-1.1, read back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

from pydantic import ConfigDict, Field, JsonValue

from orchard_core import Record, RecordCorrupt


class _Open(Record):
    model_config = ConfigDict(extra="allow")


class TrajMessage(_Open):
    """One message; the fields of its dialect, such as `tool_calls`, are kept beside these."""

    role: str
    """system, user, assistant, tool, and exit for the last."""
    content: JsonValue = None
    """Text or parts."""
    extra: Mapping[str, JsonValue] = Field(default_factory=dict)
    """What the agent noted: actions, raw output, cost, the server's answer."""


class TrajInfo(_Open):
    """How the run was made and how it ended; `config` and `mini_version` are kept beside these."""

    exit_status: str = ""
    """Submitted, LimitsExceeded, the name of an exception, ..."""
    submission: str = ""
    """What was submitted."""
    model_stats: Mapping[str, float] = Field(default_factory=dict)
    """instance_cost (US dollars) and api_calls."""


class MinisweTrajectory(_Open):
    """A whole file; `model_dump(exclude_unset=True)` gives back what was read."""

    trajectory_format: Literal["mini-swe-agent-1.1"]
    """The only one that is known."""
    info: TrajInfo
    """How it ended."""
    messages: tuple[TrajMessage, ...]
    """The conversation, in order."""


def read_trajectory(data: bytes) -> MinisweTrajectory:
    """Read the bytes of a file. Raises RecordCorrupt for anything else."""
    try:
        return MinisweTrajectory.model_validate(json.loads(data))
    except (ValueError, RecursionError) as error:
        raise RecordCorrupt(f"this is no trajectory of mini-swe-agent: {error}") from error
