"""What an agent tells of itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from orchard_core.sandbox.agent import read

_READERS: Mapping[str, Callable[[Any], Any]] = {"str": read.text, "int": read.whole, "float": read.number}


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentHealth:
    """The answer of a living agent."""

    sandbox: str
    """Id of the sandbox it serves."""
    version: str
    """Version of the agent."""
    uptime: float
    """Seconds since it began to serve."""
    pid: int
    """Its process id, inside."""
    running: int
    """Commands that have not ended."""

    @classmethod
    def of(cls, said: Any) -> AgentHealth:
        """Read off an answer. Raises KeyError and TypeError."""
        return cls(**_values(cls, said))


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMetrics:
    """What an agent uses and holds."""

    rss_bytes: int
    """Resident memory; -1 without /proc."""
    cpu_seconds: float
    """CPU time of the agent itself."""
    commands_cpu: float
    """CPU time of the commands that have been collected."""
    uptime: float
    """Seconds since it began to serve."""
    execs_running: int
    """Commands that have not ended."""
    execs_total: int
    """Commands asked for so far."""
    spool_bytes: int
    """Disk that kept output takes."""
    requests_total: int
    """Calls so far."""
    requests_open: int
    """Calls being answered, this one included."""
    tunnels_open: int
    """Tunnels that stand."""
    forwards_open: int
    """Forwarded connections that stand."""
    orphans_collected: int
    """Adopted processes whose end was collected."""

    @classmethod
    def of(cls, said: Any) -> AgentMetrics:
        """Read off an answer. Raises KeyError and TypeError."""
        return cls(**_values(cls, said))


def _values(kind: type[AgentHealth] | type[AgentMetrics], said: Any) -> dict[str, Any]:
    """Each field, of the kind that it should be; what a later agent tells besides is passed over."""
    return {field.name: _READERS[str(field.type)](said[field.name]) for field in fields(kind)}
