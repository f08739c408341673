"""What a harness can do, is limited by, and reports."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from pydantic import Field

from orchard_core.types.base import Record


class ToolUse(StrEnum):
    """How a harness takes a task's tools."""

    NATIVE = "native"
    """It calls `Tool.call` itself."""
    MCP = "mcp"
    """It connects to the MCP server by which the core serves them; `mcp_server` says where that is."""
    CLI = "cli"
    """It runs a small command-line client, which `install_tool_client` puts inside the sandbox."""
    NONE = "none"
    """It takes no tools; a task that needs some is refused."""


class HarnessCapabilities(Record):
    """What a harness can do, as data."""

    tools: ToolUse = ToolUse.NONE
    """How a task's tools reach it."""
    images: bool = False
    """It shows images to the model."""
    turn_limit: bool = True
    """It can stop after a number of turns itself."""
    calls_in_order: bool = True
    """It runs the calls of one answer one after another; false: it may run them at once, in any order."""
    replayable: bool = False
    """Its state is its conversation, so that recorded answers replay it (branch credit)."""


class Limits(Record):
    """Bounds of one rollout; None means no bound of that kind."""

    turns: int | None = Field(default=None, ge=1)
    """Model answers that the harness acts upon."""
    tokens: int | None = Field(default=None, ge=1)
    """Input plus output tokens over all calls; cached input counts once, as input."""
    calls: int | None = Field(default=None, ge=1)
    """Model calls of any kind, retries excluded."""
    cost_usd: float | None = Field(default=None, ge=0)
    """US dollars, of calls whose price is known."""
    wall_clock_s: float | None = Field(default=None, ge=0)
    """The agent phase, seconds, without time spent waiting for a rate limit."""


class StopReason(StrEnum):
    """Why a harness stopped."""

    SUBMITTED = "submitted"
    """The agent said it was done."""
    ANSWERED = "answered"
    """The model answered without a further action."""
    TURN_LIMIT = "turn_limit"
    """`Limits.turns` ran out."""
    BUDGET = "budget"
    """The gateway refused a further call: tokens, calls, cost or wall clock."""
    CONTEXT_LIMIT = "context_limit"
    """The conversation no longer fits the model."""
    MALFORMED = "malformed"
    """Too many malformed calls in a row."""
    MODEL_ERROR = "model_error"
    """The model could not be had."""
    ERROR = "error"
    """The harness itself failed; `message` says how."""


class HarnessResult(Record):
    """What a harness reports of one run. The conversation is not in it: the gateway recorded that."""

    stop: StopReason
    """Why it stopped."""
    answer: str | None = None
    """The final answer, when there is one."""
    turns: int = 0
    """Model answers acted upon; of a harness that cannot tell and says 0, the core counts all answers."""
    malformed_calls: int = 0
    """Tool calls that could not be understood."""
    message: str = ""
    """For people: details of the stop."""
    artifacts: Mapping[str, bytes] = Field(default_factory=dict)
    """Small files the harness wants kept, such as its own event log, by name."""
