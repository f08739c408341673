"""Options of the harness."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class CliConfig(BaseModel):
    """Options of `cli`; only its name is needed."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    cli: str
    """codex, claude, opencode, pi or kimi; or the path of an adapter of your own, a TOML file."""
    context_window: int = Field(default=200_000, ge=1)
    """Tokens that the model takes, told to the CLIs that ask: near it they shorten their conversation."""
    max_output: int = Field(default=32_000, ge=1)
    """Tokens of one answer at most, told to the CLIs that ask."""
