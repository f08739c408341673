"""What an external harness gets: variables, and a task file. The how-to page has the contract."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field, JsonValue

from orchard_core.tasks.contract import Tool
from orchard_core.types.base import Record
from orchard_core.types.harness import Limits
from orchard_core.types.model import ModelEndpoint
from orchard_core.types.sandbox import AgentEndpoint
from orchard_core.types.task import Task
from orchard_core.types.tool import ToolSpec

_KIT = Path(__file__).with_name("kit")
_KEPT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH")
"""All that a program sees of the driver's own variables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalProgram:
    """What to run beside the driver."""

    argv: tuple[str, ...]
    """The program and its arguments."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Further variables."""
    options: Mapping[str, JsonValue] = field(default_factory=dict)
    """Settings of the harness, for the task file."""


class TaskFile(Record):
    """The JSON file that ORCHARD_TASK names. Fields may be added, never changed."""

    id: str
    """The task's id."""
    taskset: str
    """The task set it belongs to."""
    instruction: str
    """What the agent is to do."""
    workdir: str
    """Where it works, inside the sandbox."""
    limits: Limits
    """The gateway holds all but `turns`, which is the program's own to keep."""
    tools: tuple[ToolSpec, ...] = ()
    """The task's tools, served at ORCHARD_TOOLS_URL."""
    options: Mapping[str, JsonValue] = Field(default_factory=dict)
    """Settings of the harness."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A private directory of one run."""

    root: Path
    """Removed afterwards."""

    @property
    def home(self) -> Path:
        """The program's HOME."""
        return self.root / "home"

    @property
    def work(self) -> Path:
        """Where it starts."""
        return self.root / "work"

    @property
    def result(self) -> Path:
        """Where it writes its result."""
        return self.root / "result.json"

    @property
    def artifacts(self) -> Path:
        """Files that it leaves here are kept with the rollout."""
        return self.root / "artifacts"

    def furnish(self, given: TaskFile) -> None:
        """Make its directories and the task's files."""
        for directory in (self.home, self.work, self.artifacts, self.root / "tmp"):
            directory.mkdir()
        # Escaped to ASCII: names and descriptions of a task may hold what UTF-8 cannot.
        (self.root / "task.json").write_text(json.dumps(given.model_dump()), encoding="ascii")
        (self.root / "instruction.txt").write_text(given.instruction, encoding="utf-8", newline="")


def task_file(
    program: ExternalProgram, task: Task, workdir: str, tools: Sequence[Tool], limits: Limits
) -> TaskFile:
    """The task as the program reads it."""
    specs = (
        ToolSpec(name=tool.name, description=tool.description, parameters=tool.parameters) for tool in tools
    )
    return TaskFile(
        id=task.id,
        taskset=task.taskset,
        instruction=task.instruction.encode("utf-8", "replace").decode(),
        workdir=workdir,
        limits=limits,
        tools=tuple(specs),
        options=program.options,
    )


def environment(
    program: ExternalProgram, place: Place, given: TaskFile, agent: AgentEndpoint, model: ModelEndpoint
) -> dict[str, str]:
    """All its variables: ours, a private home, and a few harmless ones of the driver's."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    turns = given.limits.turns
    return {
        **kept,
        "HOME": str(place.home),
        "TMPDIR": str(place.root / "tmp"),
        "NO_PROXY": "127.0.0.1,localhost",
        "ORCHARD_TASK": str(place.root / "task.json"),
        "ORCHARD_INSTRUCTION_FILE": str(place.root / "instruction.txt"),
        "ORCHARD_WORKDIR": given.workdir,
        "ORCHARD_MAX_TURNS": "" if turns is None else str(turns),
        **_agent_variables(place, agent),
        "ORCHARD_MODEL_BASE_URL": model.base_url,
        "ORCHARD_MODEL_KEY": model.api_key,
        "ORCHARD_MODEL": model.model,
        "ORCHARD_TOOLS_URL": f"{model.root_url}/tools",
        "ORCHARD_RESULT": str(place.result),
        "ORCHARD_ARTIFACTS": str(place.artifacts),
        "ORCHARD_PYTHON_KIT": str(_KIT),
        **program.env,
    }


def _agent_variables(place: Place, agent: AgentEndpoint) -> dict[str, str]:
    """A Unix socket gets a short name in the private directory: addresses of sockets end at 108 bytes."""
    url, socket = agent.url, ""
    if url.startswith("unix:"):
        link = place.root / "sandbox.sock"
        link.symlink_to(url.removeprefix("unix:"))
        url, socket = "http://localhost", str(link)
    return {
        "ORCHARD_SANDBOX_URL": url,
        "ORCHARD_SANDBOX_SOCKET": socket,
        "ORCHARD_SANDBOX_TOKEN": agent.token,
        "ORCHARD_SANDBOX_ID": agent.sandbox_id,
    }
