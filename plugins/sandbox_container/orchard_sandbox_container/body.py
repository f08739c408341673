"""A SandboxSpec as an engine's container: the body of `POST /containers/create`."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchard_core import Capabilities, Mount, NetworkMode, SandboxSpec, SandboxUnsupported, outlet_environment
from orchard_sandbox_container.box import Box
from orchard_sandbox_container.config import ContainerConfig
from orchard_sandbox_container.images import EngineImage

INSIDE = "/.orchard"
_AGENT = f"{INSIDE}/agent"
_RUN = f"{INSIDE}/run"
_CAPABILITIES = [
    "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID", "SYS_CHROOT",
]  # fmt: skip
"""What the agent needs to become any user, and package managers expect of root; nothing reaches the host."""
_MIB = 1 << 20
_ROOT = frozenset({"", "root", "0", "root:root", "0:0"})
_RESERVED = ("/", "/proc", "/sys", "/dev", INSIDE)
_SELINUX = Path("/sys/fs/selinux/enforce")


def check(spec: SandboxSpec, able: Capabilities) -> None:
    """Refuse what cannot be had before anything is made. Raises SandboxUnsupported."""
    asked = {"memory": spec.memory_mb, "cpu": spec.cpu, "pids": spec.pids, "disk": spec.disk_mb}
    for name, wanted in asked.items():
        if wanted is not None and wanted <= 0:
            raise SandboxUnsupported(
                f"a limit of {wanted:g} for {name} makes no sense", hint="give more than 0"
            )
        if wanted is not None and name not in able.limits:
            raise SandboxUnsupported(
                f"this engine cannot limit {name}",
                hint="a rootless engine needs cgroup v2 with delegated controllers; or leave the limit out",
            )
    for name, value in spec.env.items():
        if not name or "=" in name or "\0" in name + value:
            raise SandboxUnsupported(f"environment name {name!r} or its value cannot be passed on")
    for mount in spec.mounts:
        _check_mount(mount)


def _check_mount(mount: Mount) -> None:
    source, target = Path(mount.source), posixpath.normpath(mount.target)
    if not source.is_absolute() or not (source.is_dir() or source.is_file()):
        raise SandboxUnsupported(
            f"mount source {mount.source!r} is not a directory or file of this host",
            hint="give an absolute path; sockets and devices are never shown inside",
        )
    below = target.startswith(("/proc/", "/sys/", "/dev/", f"{INSIDE}/", "//"))
    if not target.startswith("/") or target in _RESERVED or below:
        raise SandboxUnsupported(
            f"mount target {mount.target!r} cannot be used",
            hint=f"give an absolute path outside /proc, /sys, /dev and {INSIDE}",
        )


def create_body(
    *,
    sandbox_id: str,
    spec: SandboxSpec,
    image: EngineImage,
    user: str,
    box: Box,
    agent: Path,
    labels: Mapping[str, str],
    config: ContainerConfig,
) -> dict[str, Any]:
    """`image` is what is run, `user` whom commands run as: the spec's or the image's."""
    env = dict(outlet_environment(spec.network)) | dict(spec.env)
    body: dict[str, Any] = {
        "Image": image.id,
        "Entrypoint": [_AGENT],
        "Cmd": _arguments(sandbox_id, spec, user),
        "Env": [f"{name}={value}" for name, value in env.items()],
        # The agent is root, so that its memory, token and socket are out of reach of other users' commands,
        # and becomes whom each command runs as.
        "User": "0:0",
        "WorkingDir": "/",
        "Labels": dict(labels),
        "Healthcheck": {"Test": ["NONE"]},
        "StopSignal": "SIGKILL",
        "StopTimeout": 0,
        "HostConfig": _host_config(spec, box, agent, config),
    }
    if spec.network.mode is not NetworkMode.HOST:
        body["Hostname"] = "sandbox"
    return body


def _arguments(sandbox_id: str, spec: SandboxSpec, user: str) -> list[str]:
    words = [
        "--listen",
        f"unix:{_RUN}/agent.sock",
        "--token-file",
        f"{_RUN}/token",
        "--sandbox-id",
        sandbox_id,
    ]
    words += ["--workdir", spec.workdir, "--ignore-term"]
    return words if user in _ROOT else [*words, "--drop-to", user]


def _host_config(spec: SandboxSpec, box: Box, agent: Path, config: ContainerConfig) -> dict[str, Any]:
    host_network = spec.network.mode is NetworkMode.HOST
    shown = [Mount(source=str(agent), target=_AGENT), *spec.mounts]
    host: dict[str, Any] = {
        "NetworkMode": "host" if host_network else "none",
        "CapDrop": ["ALL"],
        "CapAdd": _CAPABILITIES,
        "SecurityOpt": ["no-new-privileges", *(["label=disable"] if _SELINUX.exists() else [])],
        "Mounts": [
            {"Type": "bind", "Source": str(box.run), "Target": _RUN},
            *({"Type": "bind", "Source": m.source, "Target": m.target, "ReadOnly": True} for m in shown),
        ],
        "ShmSize": config.shm_mb * _MIB,
        "RestartPolicy": {"Name": "no"},
        **_limits(spec, config),
    }
    if config.runtime is not None:
        host["Runtime"] = config.runtime
    if config.read_only_root:
        host |= _read_only(spec)
    if config.gpus is not None:
        host |= _gpus(config.gpus)
    return host


def _limits(spec: SandboxSpec, config: ContainerConfig) -> dict[str, Any]:
    found: dict[str, Any] = {}
    memory_mb, pids = spec.memory_mb or config.default_memory_mb, spec.pids or config.default_pids
    if memory_mb is not None:
        found |= {"Memory": memory_mb * _MIB, "MemorySwap": memory_mb * _MIB}
    if pids is not None:
        found["PidsLimit"] = pids
    if spec.cpu is not None:
        found["NanoCpus"] = int(spec.cpu * 1e9)
    return found


def _read_only(spec: SandboxSpec) -> dict[str, Any]:
    size = f",size={spec.disk_mb}m" if spec.disk_mb is not None else ""
    places = {"/tmp": "1777", "/var/tmp": "1777", "/run": "755", "/root": "700", spec.workdir: "1777"}  # noqa: S108
    return {
        "ReadonlyRootfs": True,
        "Tmpfs": {path: f"rw,exec,nosuid,nodev,mode={mode}{size}" for path, mode in places.items()},
    }


def _gpus(wanted: str) -> dict[str, Any]:
    if wanted == "all":
        return {"DeviceRequests": [{"Driver": "nvidia", "Count": -1, "Capabilities": [["gpu"]]}]}
    return {"DeviceRequests": [{"Driver": "cdi", "DeviceIDs": [wanted]}]}
