"""The tasks as the installed package claw-bench brings them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from orchard_core import PluginNotInstalled, TaskSetNotFound

CONFTEST = "share/claw-bench/tasks/conftest.py"
"""Every verifier runs under this file; it lies at the root of the tasks."""


class ClawToml(BaseModel):
    """A task.toml of claw-bench."""

    model_config = ConfigDict(frozen=True, extra="allow", use_attribute_docstrings=True)

    id: str
    """Such as eml-001."""
    title: str
    """For people."""
    domain: str
    """One of fourteen."""
    level: str
    """L1 (easiest) to L4."""
    description: str = ""
    """One sentence."""
    timeout: float
    """The agent's limit, seconds."""
    capabilities: tuple[str, ...] = ()
    """What an agent needs."""
    capability_types: tuple[str, ...] = ()
    """Reasoning, tool use and the like."""
    tags: tuple[str, ...] = ()
    """Free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClawTask:
    """One task and its directory."""

    toml: ClawToml
    """What its task.toml says."""
    root: Path
    """Its directory in the installed package, never written to."""


def tasks_root() -> Path:
    """Where the package put its tasks. Raises PluginNotInstalled, TaskSetNotFound."""
    mend = "pip install 'orchard-domain-claw[bench]'"
    try:
        package = distribution("claw-bench")
    except PackageNotFoundError:
        raise PluginNotInstalled("the package claw-bench is not installed", hint=mend) from None
    for file in package.files or ():
        if file.as_posix().endswith(CONFTEST):
            return Path(str(package.locate_file(file))).resolve().parent
    raise TaskSetNotFound(f"claw-bench {package.version} brings no tasks", hint=f"{mend} --force-reinstall")


def read_all(root: Path) -> tuple[list[ClawTask], list[str]]:
    """The tasks by id, and a line for each one that could not be read."""
    tasks: list[ClawTask] = []
    problems: list[str] = []
    for path in sorted(root.glob("*/*/task.toml")):
        try:
            toml = ClawToml.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, ValidationError, RecursionError) as error:
            problems.append(f"{path.parent.name}: left out: task.toml cannot be read: {error}")
            continue
        tasks.append(ClawTask(toml=toml, root=path.parent))
    return sorted(tasks, key=lambda task: task.toml.id), problems
