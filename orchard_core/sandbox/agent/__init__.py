"""The typed client of the agent that runs inside every sandbox, whoever provides it."""

from orchard_core.sandbox.agent.address import AgentAddress
from orchard_core.sandbox.agent.binary import agent_binary
from orchard_core.sandbox.agent.changes import AgentChanges, ChangesApplied
from orchard_core.sandbox.agent.client import AgentClient, new_run_id
from orchard_core.sandbox.agent.files import AgentFiles
from orchard_core.sandbox.agent.forward import Forward
from orchard_core.sandbox.agent.health import AgentHealth, AgentMetrics
from orchard_core.sandbox.agent.process import AgentProcess
from orchard_core.sandbox.agent.runs import AgentRuns, RunOutput
from orchard_core.sandbox.agent.terminal import AgentTerminal
from orchard_core.sandbox.agent.told import RunTold
from orchard_core.sandbox.agent.trees import AgentTrees
from orchard_core.sandbox.agent.tunnel import Tunnel
from orchard_core.sandbox.agent.unpack import Links, unpack

__all__ = [
    "AgentAddress",
    "AgentChanges",
    "AgentClient",
    "AgentFiles",
    "AgentHealth",
    "AgentMetrics",
    "AgentProcess",
    "AgentRuns",
    "AgentTerminal",
    "AgentTrees",
    "ChangesApplied",
    "Forward",
    "Links",
    "RunOutput",
    "RunTold",
    "Tunnel",
    "agent_binary",
    "new_run_id",
    "unpack",
]
