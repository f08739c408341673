"""Options of the scripted models."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field


class _Options(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class OracleConfig(_Options):
    """Options of `oracle`."""

    thoughts: bool = True
    """Say a sentence before each command."""


class NoisyOracleConfig(OracleConfig):
    """Options of `noisy-oracle`."""

    rate: float = Field(default=0.3, ge=0.0, le=1.0)
    """Probability of a mistake at each step of the solution."""
    seed: int = 0
    """Drawn together with the rollout's seed, so that attempts differ and repeats do not."""


class ScriptedConfig(_Options):
    """Options of `scripted`."""

    path: Path
    """JSONL file, one reply a line: {"text": ..., "calls": [{"name": ..., "arguments": {...}}]}. A line
    with a "task" belongs to that task's rollouts only."""
