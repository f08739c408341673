"""One task directory, read and checked."""

from __future__ import annotations

import os
import posixpath
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from orchard_core.errors import TaskInvalid
from orchard_core.reward.artifacts import RESERVED, overlaps
from orchard_core.tasks.harbor.config import HarborConfig
from orchard_core.tasks.harbor.env import resolve
from orchard_core.tasks.harbor.scan import digest_tree, read_text
from orchard_core.tasks.harbor.schema import ArtifactEntry, TaskToml
from orchard_core.types.sandbox import ImageRef, Network, NetworkMode, SandboxSpec
from orchard_core.types.task import Task, VerifyIn

_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_WORKDIR = re.compile(r"^\s*WORKDIR\s+[\"']?(/[^\s\"']*)", re.IGNORECASE | re.MULTILINE)
_NETWORKS = {
    "no-network": NetworkMode.NONE,
    "public": NetworkMode.OPEN,
    "allowlist": NetworkMode.ALLOW_LIST,
}
AGENT_TIMEOUT_S = 600.0
"""For a task that names no limit of its own, seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarborTask:
    """A task and where its files are on this machine."""

    task: Task
    """What the core sees."""
    root: Path
    """The directory, absolute."""
    toml: TaskToml
    """Its task.toml."""
    spec: SandboxSpec
    """The sandbox it needs."""
    verifier_env: Mapping[str, str]
    """Environment of the tests, references filled."""
    solution_env: Mapping[str, str]
    """Environment of the solution, references filled."""
    remarks: tuple[str, ...]
    """What was ignored or mended, one line each."""


def read_task(root: Path, taskset: str, config: HarborConfig) -> HarborTask:
    """Read one directory. Raises TaskInvalid with the reason when it cannot be run as it is meant."""
    _check_layout(root)
    digest = digest_tree(root, max_mb=config.max_mb)
    toml_text, remark = read_text(root / "task.toml")
    toml = _parse(toml_text, root)
    _check_supported(root, toml)
    _check_inside(root, toml.orchard.files or "", toml.orchard.setup)
    instruction, other_remark = read_text(root / "instruction.md")
    if not instruction.strip():
        raise TaskInvalid(f"{root.name}/instruction.md is empty", hint="say there what the agent shall do")
    spec, env_remarks = _spec(root, toml, config)
    verifier_env, verifier_remarks = resolve(toml.verifier.env, config.pass_env, "verifier.env")
    solution_env, solution_remarks = resolve(toml.solution.env, config.pass_env, "solution.env")
    verify_in, artifacts = _verification(toml, spec)
    env_remarks += [*verifier_remarks, *solution_remarks]
    remarks = (remark, other_remark, *env_remarks, *_unknown(toml), *_versions(toml))
    task = Task(
        id=root.name,
        taskset=taskset,
        instruction=instruction,
        workdir=spec.workdir,
        agent_timeout_s=toml.agent.timeout_sec or AGENT_TIMEOUT_S,
        verifier_timeout_s=toml.verifier.timeout_sec,
        verify_in=verify_in,
        artifacts=artifacts,
        tags=_tags(toml),
        digest=digest,
        metadata=toml.metadata,
    )
    return HarborTask(
        task=task,
        root=root,
        toml=toml,
        spec=spec,
        verifier_env=verifier_env,
        solution_env=solution_env,
        remarks=tuple(remark for remark in remarks if remark),
    )


def _check_layout(root: Path) -> None:
    if not _ID.fullmatch(root.name):
        raise TaskInvalid(
            f"{root.name!a} cannot be a task's name", hint="use letters, digits, dot, dash, underscore"
        )
    for name in ("task.toml", "instruction.md", "tests/test.sh"):
        if not (root / name).is_file():
            raise TaskInvalid(f"{root.name} has no {name}", hint="see the how-to on task sets for the shape")


def _parse(text: str, root: Path) -> TaskToml:
    try:
        return TaskToml.model_validate(tomllib.loads(text))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise TaskInvalid(f"{root.name}/task.toml: {key}: {first['msg']}") from error
    except (ValueError, RecursionError) as error:  # a number of too many digits, tables nested too deep
        raise TaskInvalid(f"{root.name}/task.toml is not TOML: {error}") from error


def _check_supported(root: Path, toml: TaskToml) -> None:
    """What would give wrong results if it were ignored makes the task invalid here."""
    reasons = {
        "it has several steps": bool(toml.steps),
        "it needs a GPU": toml.environment.gpus > 0,
        "it brings MCP servers": bool(toml.environment.mcp_servers),
        "it needs several containers (docker-compose)": any((root / "environment").glob("docker-compose.y*")),
    }
    for reason, applies in reasons.items():
        if applies:
            raise TaskInvalid(f"{root.name} cannot be run here: {reason}")


def _check_inside(root: Path, *names: str) -> None:
    for name in names:
        if "\0" in name or not Path(os.path.realpath(root / name)).is_relative_to(root.resolve()):
            raise TaskInvalid(f"{root.name}/task.toml: {name!r} lies outside the task directory")


def _spec(root: Path, toml: TaskToml, config: HarborConfig) -> tuple[SandboxSpec, list[str]]:
    environment = toml.environment
    env, remarks = resolve(environment.env, config.pass_env, "environment.env")
    image = _image(root, toml)
    workdir = environment.workdir or _dockerfile_workdir(root) or "/workspace"
    if not workdir.startswith("/") or "\0" in workdir:
        raise TaskInvalid(
            f"{root.name}/task.toml: environment.workdir {workdir!r} is not absolute, or holds a NUL byte"
        )
    spec = SandboxSpec(
        image=image,
        cpu=environment.cpus,
        memory_mb=environment.memory_mb or environment.memory,
        disk_mb=environment.storage_mb or environment.storage,
        network=_network(root, toml, image),
        env=env,
        user=toml.agent.user,
        workdir=posixpath.normpath(workdir),
    )
    return spec, remarks


def _image(root: Path, toml: TaskToml) -> ImageRef:
    if toml.environment.docker_image:
        return ImageRef(kind="oci", value=toml.environment.docker_image)
    if (root / "environment" / "Dockerfile").is_file():
        return ImageRef(kind="build", value=str(root / "environment"))
    return ImageRef(kind="host")


def _dockerfile_workdir(root: Path) -> str | None:
    dockerfile = root / "environment" / "Dockerfile"
    if not dockerfile.is_file():
        return None
    found = _WORKDIR.findall(read_text(dockerfile)[0])
    return found[-1] if found else None


def _network(root: Path, toml: TaskToml, image: ImageRef) -> Network:
    """Harbor's default is the open network; a task on the host's own files gets none unless it asks."""
    environment = toml.environment
    mode = NetworkMode.NONE if image.kind == "host" else NetworkMode.OPEN
    if environment.network_mode:
        mode = _NETWORKS[environment.network_mode]
    elif environment.allow_internet is not None:
        mode = NetworkMode.OPEN if environment.allow_internet else NetworkMode.NONE
    if mode is NetworkMode.ALLOW_LIST and not environment.allowed_hosts:
        raise TaskInvalid(f"{root.name}/task.toml: network_mode allowlist without allowed_hosts")
    return Network(mode=mode, allow=environment.allowed_hosts if mode is NetworkMode.ALLOW_LIST else ())


def _verification(toml: TaskToml, spec: SandboxSpec) -> tuple[VerifyIn, tuple[str, ...]]:
    """Where the tests run, and what they need.

    `[orchard] verify` decides; else environment_mode; else artifacts or an image-less task mean fresh,
    because what the tests need is then known; else the tests may look at anything, so the same sandbox.
    """
    listed = [entry.source if isinstance(entry, ArtifactEntry) else entry for entry in toml.artifacts]
    paths = [*listed, *toml.orchard.artifacts]
    for path in paths:
        if not path.startswith("/") or "\0" in path or overlaps(path, RESERVED):
            raise TaskInvalid(
                f"artifact {path!r} is not an absolute path of its own",
                hint=f"name an absolute path; {', '.join(RESERVED)} belong to the tests",
            )
    mode = toml.orchard.verify or {"shared": "same_sandbox", "separate": "fresh"}.get(
        toml.verifier.environment_mode or "",
        "fresh" if paths or spec.image.kind == "host" else "same_sandbox",
    )
    if mode == "fresh" and not paths:
        if overlaps(spec.workdir, RESERVED):
            raise TaskInvalid(f"workdir {spec.workdir} belongs to the tests", hint="choose /workspace")
        paths = [spec.workdir]
    return VerifyIn(mode), tuple(dict.fromkeys(posixpath.normpath(path) for path in paths))


def _tags(toml: TaskToml) -> tuple[str, ...]:
    tags: list[str] = []
    for key in ("difficulty", "category", "tags", "keywords"):
        value = toml.metadata.get(key)
        tags += [str(item) for item in (value if isinstance(value, list) else [value]) if item]
    return tuple(dict.fromkeys(tags))


def _unknown(toml: TaskToml) -> list[str]:
    return [f"task.toml: unknown key {key} was ignored" for key in toml.unknown()]


def _versions(toml: TaskToml) -> list[str]:
    version = toml.version or toml.schema_version
    known = version.split(".")[0] == "1"
    return [] if known else [f"task.toml: schema {version} is newer than what is known (1.x)"]
