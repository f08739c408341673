"""`task.toml` as Harbor defines it (schema 1.x and the fields it has retired), and our own `[orchard]` table.

Keys we do not know are kept apart so that they can be told to the user instead of being dropped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, FiniteFloat, JsonValue

_SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*$", re.IGNORECASE)
_MIB = {"": 1 / (1 << 20), "k": 1 / 1024, "m": 1.0, "g": 1024.0, "t": 1024.0 * 1024}


def mebibytes(text: str) -> int:
    """`2G`, `512M`, `1.5GiB` or plain bytes, in MiB, at least 1. Raises ValueError."""
    match = _SIZE.match(text)
    size = float(match[1]) * _MIB[match[2].lower()] if match else math.inf
    if not math.isfinite(size):
        raise ValueError(f"{text[:40]!r} is not a size such as 512M or 2G")
    return max(1, round(size))


def _user(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _ordered(span: tuple[float, float]) -> tuple[float, float]:
    if span[0] >= span[1]:
        raise ValueError("the smallest comes before the largest")
    return span


def _environment(env: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in env.items():
        if not name or "=" in name or "\0" in name + value:
            raise ValueError(f"{name!a} or its value is nothing that an environment can hold")
    return env


Environment = Annotated[Mapping[str, str], AfterValidator(_environment)]
User = Annotated[str | None, BeforeValidator(_user)]
Size = Annotated[int | None, Field(gt=0, le=1 << 40)]
SizeText = Annotated[Size, BeforeValidator(lambda v: mebibytes(v) if isinstance(v, str) else v)]
LONGEST_S = 1e9
"""A limit beyond this is a slip, and more than a clock of nanoseconds can count comes soon after it."""


class Section(BaseModel):
    """A table of task.toml. Unknown keys are kept, and listed by `unknown`."""

    model_config = ConfigDict(frozen=True, extra="allow", use_attribute_docstrings=True)

    def unknown(self, prefix: str = "") -> Iterator[str]:
        """Dotted names of keys that nothing here reads."""
        for key in self.model_extra or {}:
            yield prefix + key
        for name in type(self).model_fields:
            value = getattr(self, name)
            for item in value if isinstance(value, list | tuple) else (value,):
                if isinstance(item, Section):
                    yield from item.unknown(f"{prefix}{name}.")


class AgentSection(Section):
    """`[agent]`"""

    timeout_sec: float | None = Field(default=None, gt=0, le=LONGEST_S)
    """Wall-clock limit of the agent, seconds."""
    user: User = None
    """Whom the agent's commands run as."""


class VerifierSection(Section):
    """`[verifier]`"""

    timeout_sec: float = Field(default=600.0, gt=0, le=LONGEST_S)
    """Wall-clock limit of the tests, seconds."""
    env: Environment = {}
    """Environment of the tests; `${NAME}` and `${NAME:-default}` refer to the driver's own."""
    user: User = None
    """Whom the tests run as."""
    environment_mode: Literal["shared", "separate"] | None = None
    """Whether the tests run in the agent's environment or in one of their own."""


class SolutionSection(Section):
    """`[solution]`"""

    env: Environment = {}
    """Environment of the solution."""


class EnvironmentSection(Section):
    """`[environment]`"""

    docker_image: str | None = None
    """A ready image."""
    build_timeout_sec: float | None = None
    """For builders of images; nothing here builds."""
    cpus: float | None = Field(default=None, gt=0, le=10_000)
    """CPU cores."""
    memory_mb: Size = None
    """Memory, MiB."""
    storage_mb: Size = None
    """Disk, MiB."""
    memory: SizeText = None
    """The retired form of memory_mb, such as `2G`."""
    storage: SizeText = None
    """The retired form of storage_mb."""
    gpus: int = 0
    """GPUs; a task that needs one is left out."""
    network_mode: Literal["no-network", "public", "allowlist"] | None = None
    """What may be reached."""
    allowed_hosts: tuple[str, ...] = ()
    """Hosts for `allowlist`."""
    allow_internet: bool | None = None
    """The retired form of network_mode."""
    env: Environment = {}
    """Environment of every command."""
    workdir: str | None = None
    """Where commands run."""
    mcp_servers: tuple[JsonValue, ...] = ()
    """Tools of the task's own; a task that has some is left out."""


class ArtifactEntry(Section):
    """One entry of `artifacts` in its long form."""

    source: str
    """Absolute path inside."""


class OrchardStep(Section):
    """One entry of `[[orchard.steps]]`."""

    command: str
    """A shell command."""
    thought: str = ""
    """Why."""


class OrchardSection(Section):
    """`[orchard]`: what Harbor has no word for."""

    verify: Literal["fresh", "same_sandbox"] | None = None
    """Overrides where the tests run."""
    artifacts: tuple[str, ...] = ()
    """Absolute paths inside that the tests need; added to the top-level `artifacts`."""
    files: str | None = None
    """Directory, relative to the task, whose content is put into the workdir before the agent starts. By
    default environment/files; without that, and without an image, environment itself but for setup.sh.
    Empty: nothing."""
    setup: str = "environment/setup.sh"
    """Script, relative to the task, run inside the sandbox in the workdir before the agent starts."""
    setup_timeout_sec: float = Field(default=120.0, gt=0, le=LONGEST_S)
    """Limit of the set-up script, seconds."""
    reward_range: Annotated[tuple[FiniteFloat, FiniteFloat], AfterValidator(_ordered)] = (0.0, 1.0)
    """Smallest and largest reward that is believed."""
    steps: tuple[OrchardStep, ...] = ()
    """The solution as commands with thoughts; before solution/solve.sh when both are there."""
    answer: str = ""
    """The solution's final answer, for tasks that ask for one."""


class TaskToml(Section):
    """The whole file."""

    schema_version: str = "1.0"
    """Version of the shape; 1.x is read."""
    version: str | None = None
    """The retired name of schema_version."""
    task: Mapping[str, JsonValue] = {}
    """Name, authors and keywords of the package."""
    source: JsonValue = None
    """Where the task was taken from."""
    metadata: Mapping[str, JsonValue] = {}
    """Free."""
    artifacts: tuple[str | ArtifactEntry, ...] = ()
    """Absolute paths inside to be kept."""
    steps: tuple[JsonValue, ...] = ()
    """Several instructions in a row; a task that has them is left out."""
    agent: AgentSection = AgentSection()
    """`[agent]`"""
    verifier: VerifierSection = VerifierSection()
    """`[verifier]`"""
    solution: SolutionSection = SolutionSection()
    """`[solution]`"""
    environment: EnvironmentSection = EnvironmentSection()
    """`[environment]`"""
    orchard: OrchardSection = OrchardSection()
    """`[orchard]`"""
