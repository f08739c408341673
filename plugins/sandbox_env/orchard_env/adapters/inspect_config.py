"""Configurations of Inspect's tasks as specs of sandboxes. What one sandbox cannot be is refused in words."""

from __future__ import annotations

import re
from pathlib import Path

from inspect_ai.util import ComposeConfig, ComposeService, is_compose_yaml, is_dockerfile, parse_compose_yaml
from pydantic import BaseModel, field_validator

from orchard_core import ConfigError, Network, NetworkMode, SandboxSpec
from orchard_env.adapters.wanted import default_image, image_of
from orchard_env.remote.provider import RemoteProvider

CONFIG_FILES = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml", "Dockerfile")
_BUILT = "build and push the image, then write sandbox=('orchard', 'IMAGE')"
_IDLE = re.compile(r"tail -f /dev/null|sleep \S+")
_HONOURED = frozenset({
    "image", "command", "entrypoint", "init", "working_dir", "environment", "user", "network_mode", "cpus",
    "mem_limit", "x_default",
})  # fmt: skip


class OrchardSpec(SandboxSpec):
    """A sandbox's spec as Inspect keeps configurations, in sets; an image of a registry by its plain name."""

    @field_validator("image", mode="before")
    @classmethod
    def _image_text(cls, value: object) -> object:
        return image_of(value) if isinstance(value, str) else value

    def __hash__(self) -> int:
        return hash(repr(self))


async def spec_of(provider: RemoteProvider, config: BaseModel | str | None) -> SandboxSpec:
    """What a task asks for: an OrchardSpec, an image's name, a compose file of one service that is not built,
    or nothing. Raises ConfigError."""
    if isinstance(config, SandboxSpec):
        return config
    if is_dockerfile(config):
        raise ConfigError(
            f"a service of sandboxes builds no images, and {config} is a Dockerfile", hint=_BUILT
        )
    if isinstance(config, str) and is_compose_yaml(config):
        config = parse_compose_yaml(str(Path(config).resolve()))
    if isinstance(config, ComposeConfig):
        return _composed(config)
    if isinstance(config, str):
        return SandboxSpec(image=image_of(_name_in(config)))
    if config is not None:
        raise ConfigError(
            f"a {type(config).__name__} configures no Orchard sandbox",
            hint="give an image's name, or an OrchardSpec",
        )
    return SandboxSpec(image=await default_image(provider, "write sandbox=('orchard', 'IMAGE')"))


def _name_in(text: str) -> str:
    """The image's name. Inspect takes any text for a file of the task's directory and puts that before it."""
    path = Path(text)
    if path.is_file():
        raise ConfigError(
            f"{text} configures no Orchard sandbox",
            hint="give an image's name, a compose file or an OrchardSpec",
        )
    known = next((parent for parent in path.parents if parent.is_dir()), None)
    return str(path.relative_to(known)) if known is not None and path.is_absolute() else text


def _composed(config: ComposeConfig) -> SandboxSpec:
    if len(config.services) != 1:
        raise ConfigError(
            f"a sandbox is one service, and the compose file has {len(config.services)}",
            hint="use Inspect's docker sandbox for several that speak to each other",
        )
    ((name, service),) = config.services.items()
    if service.build is not None or not service.image:
        raise ConfigError(
            f"a service of sandboxes builds no images, and the compose service {name} is built", hint=_BUILT
        )
    lost = _lost(service)
    if lost:
        raise ConfigError(
            f"the compose service {name} asks for what a sandbox does not give: {', '.join(lost)}",
            hint="take it out of the compose file, or use Inspect's docker sandbox",
        )
    return SandboxSpec(
        image=image_of(service.image),
        workdir=service.working_dir or SandboxSpec().workdir,
        user=service.user,
        env=_environment(service),
        cpu=service.cpus,
        memory_mb=_megabytes(service.mem_limit) if service.mem_limit else None,
        network=Network(mode=NetworkMode.NONE if service.network_mode == "none" else NetworkMode.OPEN),
    )


def _lost(service: ComposeService) -> list[str]:
    given = {field for field in type(service).model_fields if getattr(service, field) is not None}
    lost = sorted(given - _HONOURED)
    for what in (service.entrypoint, service.command):
        text = what if isinstance(what, str) else " ".join(what or ())
        if text and not _IDLE.search(text):  # what keeps a container alive is not needed here
            lost.append(f"the command {text!r}")
    if service.network_mode not in (None, "none", "bridge"):
        lost.append(f"network_mode {service.network_mode}")
    return lost


def _environment(service: ComposeService) -> dict[str, str]:
    given = service.environment or {}
    pairs = dict(item.split("=", 1) for item in given if "=" in item) if isinstance(given, list) else given
    return {name: value for name, value in pairs.items() if value is not None}


def _megabytes(text: str) -> int:
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([kmg]?)(?:i?b)?", text.strip().lower())
    if found is None:
        raise ConfigError(f"mem_limit {text!r} is no size", hint="write 512m or 2g")
    scale = {"": 2**-20, "k": 2**-10, "m": 1, "g": 1024}[found[2]]
    return max(1, round(float(found[1]) * scale))
