"""What a client of a service may not ask for: pieces of the machine that the service runs on."""

from __future__ import annotations

import math
import re
from pathlib import Path

from orchard_core import NetworkMode, SandboxSpec
from orchard_env.service.faults import RequestInvalid, ScopeMissing
from orchard_env.service.seams import Tenant
from orchard_env.service.settings import ServiceSettings

OWN_LABELS = "orchard.dev/"
"""Labels that begin so are the service's."""
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_TTL_MAX_S = 366 * 86400.0


def check_wanted(spec: SandboxSpec, tenant: Tenant, settings: ServiceSettings) -> None:
    """Raises RequestInvalid, and ScopeMissing for what only an administrator of the service may ask for."""
    own = [name for name in spec.labels if name.startswith(OWN_LABELS)]
    if own:
        raise RequestInvalid(f"the label {own[0][:80]} is the service's own", hint="choose another name")
    if spec.name is not None and not _NAME.fullmatch(spec.name):
        raise RequestInvalid(
            f"{spec.name[:80]!r} cannot name a sandbox",
            hint="at most 63 of a-z, 0-9 and -, no - at either end",
        )
    _check_paths(spec)
    _check_numbers(spec)
    if tenant.is_admin:
        return
    if spec.mounts:
        raise _administrators("mounts of the service's machine")
    if spec.network.mode is NetworkMode.HOST:
        raise _administrators("the network of the service's machine")
    if spec.image.kind == "build" or (spec.image.kind == "rootfs" and not _allowed(spec, settings)):
        raise _administrators(f"the image {spec.image}")


def _check_paths(spec: SandboxSpec) -> None:
    for path in (spec.workdir, *(file.path for file in spec.files)):
        if not path.startswith("/") or "\0" in path:
            raise RequestInvalid(f"{path[:80]!r} is no absolute path", hint="paths inside begin with /")


def _check_numbers(spec: SandboxSpec) -> None:
    wanted = {
        "cpu": spec.cpu,
        "memory_mb": spec.memory_mb,
        "disk_mb": spec.disk_mb,
        "pids": spec.pids,
        "ttl_s": spec.ttl_s,
        "idle_ttl_s": spec.idle_ttl_s,
    }
    for name, value in wanted.items():
        if value is not None and not (math.isfinite(value) and value > 0):
            raise RequestInvalid(f"{name} is {value}", hint="it is a number above 0, or left out")
    if spec.ttl_s > _TTL_MAX_S:
        raise RequestInvalid(f"ttl_s is {spec.ttl_s:g}", hint=f"{_TTL_MAX_S:g} at most; it can be extended")


def _allowed(spec: SandboxSpec, settings: ServiceSettings) -> bool:
    path = Path(spec.image.value).resolve()
    return any(path.is_relative_to(Path(root).resolve()) for root in settings.rootfs_allowed)


def _administrators(what: str) -> ScopeMissing:
    return ScopeMissing(
        f"{what}: only for an administrator of the service", hint="ask for an image of a registry instead"
    )
