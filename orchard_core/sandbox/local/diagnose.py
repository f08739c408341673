"""Why a host forbids user namespaces, and each way out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from orchard_core.errors import SandboxUnavailable

_OTHERWISE = (
    "or use another provider: a container (`--sandbox container`, package orchard-sandbox-container), a "
    "remote one (package orchard-env), or, without any isolation and for trusted commands only, "
    "`--sandbox process`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Something that keeps an ordinary process from making namespaces."""

    reason: str
    """What it is."""
    way_out: str
    """The command that mends it."""


def unavailable(said: str, *, bwrap: Path, root: Path = Path("/")) -> SandboxUnavailable:
    """The error for a bubblewrap that failed with the words `said`. `root` is where /proc and /run are
    found."""
    found = find_obstacles(bwrap, root)
    reasons = "; ".join(obstacle.reason for obstacle in found) or "the kernel refused without a known reason"
    ways = [obstacle.way_out for obstacle in found] or [
        "see `bwrap --unshare-all --bind / / true` for the kernel's own words"
    ]
    words = said.strip() or "nothing"
    return SandboxUnavailable(
        f"this host does not let bubblewrap isolate: {reasons} (bwrap said: {words})",
        hint="; or ".join(ways) + "; " + _OTHERWISE,
    )


def find_obstacles(bwrap: Path, root: Path) -> list[Obstacle]:
    """Every known obstacle of this host, whether or not it was the one."""
    sysctl = root / "proc/sys"
    found: list[Obstacle] = []
    if _number(sysctl / "kernel/apparmor_restrict_unprivileged_userns") == 1:
        found.append(_apparmor(bwrap))
    if _number(sysctl / "kernel/unprivileged_userns_clone") == 0:
        found.append(_sysctl("kernel.unprivileged_userns_clone", 0, 1))
    if _number(sysctl / "user/max_user_namespaces") == 0:
        found.append(_sysctl("user.max_user_namespaces", 0, 15000))
    if _in_container(root):
        found.append(_container())
    return found


def _sysctl(name: str, value: int, better: int) -> Obstacle:
    return Obstacle(
        reason=f"user namespaces are switched off ({name}={value})", way_out=f"sudo sysctl {name}={better}"
    )


def _apparmor(bwrap: Path) -> Obstacle:
    name = "kernel.apparmor_restrict_unprivileged_userns"
    profile = f"abi <abi/4.0>, profile orchard-bwrap {bwrap} flags=(unconfined) {{ userns, }}"
    path = "/etc/apparmor.d/orchard-bwrap"
    return Obstacle(
        reason=f"AppArmor restricts unprivileged user namespaces ({name}=1)",
        way_out=f"allow this program alone: echo '{profile}' | sudo tee {path} "
        f"&& sudo apparmor_parser -r {path}; or allow all: sudo sysctl {name}=0",
    )


def _container() -> Obstacle:
    return Obstacle(
        reason="this process runs in a container whose profile forbids namespaces or mounts",
        way_out="start the container with `--security-opt seccomp=unconfined "
        "--security-opt apparmor=unconfined --security-opt systempaths=unconfined` "
        "(podman: `--security-opt unmask=ALL`), or `--privileged`; in Kubernetes set `procMount: Unmasked` "
        "and `seccompProfile: Unconfined`",
    )


def _in_container(root: Path) -> bool:
    markers = (root / ".dockerenv", root / "run/.containerenv", root / "var/run/secrets/kubernetes.io")
    return any(marker.exists() for marker in markers)


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text().strip())
    except (OSError, ValueError):
        return None
