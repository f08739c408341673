"""Why a host forbids user namespaces, and each way out."""

from __future__ import annotations

from pathlib import Path

from orchard_core.errors import SandboxUnavailable

_OTHERWISE = (
    "or use another provider: a container (`--sandbox container`, package orchard-sandbox-container), a remote one "
    "(package orchard-env), or, without any isolation and for trusted commands only, `--sandbox process`"
)


def unavailable(said: str, *, bwrap: Path, root: Path = Path("/")) -> SandboxUnavailable:
    """The error for a bubblewrap that failed with the words `said`. `root` is where /proc and /run are found."""
    causes = _causes(bwrap, root)
    reasons = "; ".join(reason for reason, _ in causes) or "the kernel refused without a known reason"
    ways = [way for _, way in causes] or [
        "see `bwrap --unshare-all --bind / / true` for the kernel's own words"
    ]
    words = said.strip() or "nothing"
    return SandboxUnavailable(
        f"this host does not let bubblewrap isolate: {reasons} (bwrap said: {words})",
        hint="; or ".join(ways) + "; " + _OTHERWISE,
    )


def _causes(bwrap: Path, root: Path) -> list[tuple[str, str]]:
    """(reason, way out) of each obstacle found."""
    found: list[tuple[str, str]] = []
    sysctl = root / "proc/sys"
    if _number(sysctl / "kernel/apparmor_restrict_unprivileged_userns") == 1:
        found.append(
            (
                "AppArmor restricts unprivileged user namespaces (kernel.apparmor_restrict_unprivileged_userns=1)",
                f"allow this program alone: {_apparmor_profile(bwrap)}; or allow all: "
                "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0",
            )
        )
    if _number(sysctl / "kernel/unprivileged_userns_clone") == 0:
        found.append(
            (
                "unprivileged user namespaces are off (kernel.unprivileged_userns_clone=0)",
                "sudo sysctl kernel.unprivileged_userns_clone=1",
            )
        )
    if _number(sysctl / "user/max_user_namespaces") == 0:
        found.append(
            (
                "no user namespaces are allowed (user.max_user_namespaces=0)",
                "sudo sysctl user.max_user_namespaces=15000",
            )
        )
    if _in_container(root):
        found.append(
            (
                "this process runs in a container whose seccomp or AppArmor profile forbids namespaces or mounts",
                "start the container with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined "
                "--security-opt systempaths=unconfined` (podman: `--security-opt unmask=ALL`), or `--privileged`; in "
                "Kubernetes set `procMount: Unmasked` and `seccompProfile: Unconfined`",
            )
        )
    return found


def _apparmor_profile(bwrap: Path) -> str:
    profile = f"abi <abi/4.0>, profile orchard-bwrap {bwrap} flags=(unconfined) {{ userns, }}"
    return (
        f"echo '{profile}' | sudo tee /etc/apparmor.d/orchard-bwrap && sudo apparmor_parser -r "
        "/etc/apparmor.d/orchard-bwrap"
    )


def _in_container(root: Path) -> bool:
    markers = (root / ".dockerenv", root / "run/.containerenv", root / "var/run/secrets/kubernetes.io")
    return any(marker.exists() for marker in markers)


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text().strip())
    except (OSError, ValueError):
        return None
