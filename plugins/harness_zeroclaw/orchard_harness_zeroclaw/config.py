"""Options of the harness."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class ZeroClawConfig(BaseModel):
    """Options of `zeroclaw`, all with a default."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    binary: Path | None = None
    """The program on this machine, shown read-only inside; None: `zeroclaw` on PATH, else the image's own."""
    max_tool_iterations: int = Field(default=1000, ge=1)
    """Rounds of tool calls before ZeroClaw asks its model for a summary and stops; its own default is 10."""
    context_tokens: int = Field(default=128_000, ge=1)
    """Budget of its history, tokens: beyond it, whole turns are left out, and the rollout forks."""
    shell_timeout_s: int = Field(default=600, ge=1)
    """Limit of one shell command, seconds."""
    subagents: bool = True
    """It may spawn subagents; what they say to the model is recorded as forks."""
    wire_api: Literal["chat_completions", "responses"] = "chat_completions"
    """The protocol it speaks to the model."""
    temperature: float | None = Field(default=None, ge=0)
    """Sampling temperature; None: its own default."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Tokens of one answer at most; None: its own default."""
