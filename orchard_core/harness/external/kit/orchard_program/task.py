"""The task that the environment names, and the result."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is to be done."""

    id: str
    """Its id."""
    taskset: str
    """Its task set."""
    instruction: str
    """What the agent is to do."""
    workdir: str
    """Where it works, inside the sandbox."""
    limits: Mapping[str, Any]
    """The gateway holds all but `turns`."""
    tools: Sequence[Mapping[str, Any]]
    """Name, description and parameters of the task's tools, served at ORCHARD_TOOLS_URL."""
    options: Mapping[str, Any]
    """Settings of the harness."""


def read_task() -> Task:
    """The task file's content."""
    said = json.loads(Path(os.environ["ORCHARD_TASK"]).read_text(encoding="utf-8"))
    return Task(**{part.name: said[part.name] for part in fields(Task)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The model, behind Orchard's gateway."""

    name: str
    """What to ask for."""
    base_url: str
    """Of an OpenAI-compatible server, ending in /v1."""
    key: str = field(repr=False)
    """Bearer key, for the tools too."""
    mcp_url: str
    """The MCP server of the task's tools, by streamable HTTP."""


def read_model() -> Model:
    """The one that the environment names."""
    return Model(
        name=os.environ["ORCHARD_MODEL"],
        base_url=os.environ["ORCHARD_MODEL_BASE_URL"],
        key=os.environ["ORCHARD_MODEL_KEY"],
        mcp_url=f"{os.environ['ORCHARD_TOOLS_URL']}/mcp",
    )


def keep_file(name: str, data: bytes) -> None:
    """Keep a file with the rollout, under a relative path."""
    path = Path(os.environ["ORCHARD_ARTIFACTS"]) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def write_result(
    stop: str, *, answer: str | None = None, turns: int = 0, malformed_calls: int = 0, message: str = ""
) -> None:
    """Write the result, whole or not at all. `stop` is submitted, answered, turn_limit, budget,
    context_limit, malformed, model_error or error."""
    counts = {"turns": turns, "malformed_calls": malformed_calls}
    path = Path(os.environ["ORCHARD_RESULT"])
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(
        json.dumps({"stop": stop, "answer": answer, **counts, "message": message}), encoding="utf-8"
    )
    unfinished.replace(path)
