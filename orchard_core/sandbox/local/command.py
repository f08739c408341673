"""The bubblewrap command line: everything a sandbox gets, and so everything it can see."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from orchard_core.errors import SandboxUnsupported
from orchard_core.sandbox.local.account import Account
from orchard_core.sandbox.local.veil import Veil
from orchard_core.types.sandbox import Mount

AGENT_INSIDE = "/.orchard-agent"
PATH_INSIDE = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_CAPABILITIES = (
    "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID", "SYS_CHROOT",
)  # fmt: skip
"""Over what belongs to the sandbox's own namespaces only; what mounting and networking need is not among
them."""
_MASKED = ("kcore", "keys", "latency_stats", "sched_debug", "scsi", "sysrq-trigger", "timer_list")
_RESERVED = ("/", "/proc", "/dev", AGENT_INSIDE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A part of the root file system."""

    target: str
    """Where it lies inside."""
    lower: Path | None
    """What is shown, never written; None: `upper` alone is the tree."""
    upper: Path | None
    """Takes all changes; None: read-only."""
    work: Path | None = None
    """Scratch directory of the overlay, on the file system of `upper`."""
    veil: Veil | None = None
    """Covers parts of `lower`."""

    def arguments(self) -> list[str]:
        """As bubblewrap takes it."""
        if self.upper is None:
            return ["--ro-bind", str(self.lower), self.target, *self._masks()]
        if self.lower is None:
            return ["--bind", str(self.upper), self.target]
        veil = [] if self.veil is None else ["--overlay-src", str(self.veil.directory)]
        lower = ["--overlay-src", str(self.lower)]
        return [*lower, *veil, "--overlay", str(self.upper), str(self.work), self.target]

    def _masks(self) -> list[str]:
        """The veil where there is no overlay, without what has gone since it was found."""
        if self.veil is None or self.lower is None:
            return []
        words: list[str] = []
        for name in filter(self._is_there, self.veil.files):
            words += ["--ro-bind", "/dev/null", f"{self.target}/{name}"]
        for name in filter(self._is_there, self.veil.directories):
            path = f"{self.target}/{name}"
            words += ["--perms", "0000", "--tmpfs", path, "--remount-ro", path]
        return words

    def _is_there(self, name: str) -> bool:
        return self.lower is not None and os.path.lexists(self.lower / name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptors:
    """File descriptors that bubblewrap or the agent inherits."""

    listener: int
    """The agent's listening socket: it has no name inside."""
    token: int
    """Read end; the token comes, and then the end, only when everything else is ready."""
    info: int
    """Write end; bubblewrap tells the process id."""
    block: int
    """Read end; bubblewrap starts the agent when a byte comes."""
    seccomp: int | None
    """The system-call filter."""

    def all(self) -> tuple[int, ...]:
        """Every one, to be passed on."""
        known = (self.listener, self.token, self.info, self.block)
        return known if self.seccomp is None else (*known, self.seccomp)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One sandbox as bubblewrap shall make it."""

    sandbox_id: str
    """Demanded by the agent on every call."""
    layers: tuple[Layer, ...]
    """The root first."""
    mounts: tuple[Mount, ...]
    """Read-only pieces of the host."""
    account: Account
    """The one user inside."""
    env: Mapping[str, str]
    """Of the agent, and so of every command."""
    workdir: str
    """Where commands run."""
    agent: Path
    """The agent's binary on the host."""
    host_network: bool = False
    """Share the host's network; only when the spec names it."""


def arguments(plan: Plan, fds: Descriptors) -> tuple[list[str], list[str]]:
    """Options and command. The options go to bubblewrap through a file, out of sight of `ps`."""
    args = ["--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--as-pid-1"]
    if plan.host_network:
        args.append("--share-net")
    args += ["--uid", str(plan.account.uid), "--gid", str(plan.account.gid), "--hostname", "sandbox"]
    args += ["--cap-drop", "ALL"]
    for name in _CAPABILITIES:
        args += ["--cap-add", f"CAP_{name}"]
    for layer in plan.layers:
        args += layer.arguments()
    args += ["--proc", "/proc", *_proc_masks(), "--dev", "/dev", "--ro-bind", str(plan.agent), AGENT_INSIDE]
    for mount in plan.mounts:
        args += ["--ro-bind", mount.source, mount.target]
    args.append("--clearenv")
    for name, value in plan.env.items():
        args += ["--setenv", name, value]
    if fds.seccomp is not None:
        args += ["--seccomp", str(fds.seccomp)]
    args += ["--info-fd", str(fds.info), "--block-fd", str(fds.block), "--chdir", "/"]
    return args, _agent_command(plan, fds)


def _agent_command(plan: Plan, fds: Descriptors) -> list[str]:
    return [
        AGENT_INSIDE, "--listen", f"fd:{fds.listener}", "--token-fd", str(fds.token),
        "--sandbox-id", plan.sandbox_id, "--workdir", plan.workdir, "--ignore-term",
    ]  # fmt: skip


@cache
def _proc_masks() -> tuple[str, ...]:
    """Host root's user id passes the checks of /proc/sys even without capabilities, so it is shown read-only;
    what tells about the host as a whole is covered. A kernel that runs neither gains nor loses such files."""
    masks = ["--ro-bind", "/proc/sys", "/proc/sys"]
    if os.geteuid() == 0:
        for name in _MASKED:
            if Path("/proc", name).is_file():
                masks += ["--ro-bind", "/dev/null", f"/proc/{name}"]
    return tuple(masks)


def check_mounts(mounts: tuple[Mount, ...]) -> None:
    """Raises SandboxUnsupported for a mount that cannot be, before anything starts."""
    for mount in mounts:
        source = Path(mount.source)
        if not source.is_absolute() or not (source.is_dir() or source.is_file()):
            raise SandboxUnsupported(
                f"mount source {mount.source!r} is not a directory or file of this host",
                hint="give an absolute path; sockets and devices are never shown inside",
            )
        target = posixpath.normpath(mount.target)
        reserved = target in _RESERVED or target.startswith(("/proc/", "/dev/"))
        if not target.startswith("/") or target.startswith("//") or reserved:
            raise SandboxUnsupported(
                f"mount target {mount.target!r} cannot be used",
                hint="give an absolute path outside /proc and /dev",
            )


def environment(account: Account, extra: Mapping[str, str]) -> dict[str, str]:
    """What every command starts with; the spec's values win."""
    for name, value in extra.items():
        if not name or "=" in name or "\0" in name + value:
            raise SandboxUnsupported(f"environment name {name!r} or its value cannot be passed on")
    own = {"PATH": PATH_INSIDE, "HOME": account.home, "USER": account.name, "LOGNAME": account.name}
    return own | {"LANG": "C.UTF-8", "TMPDIR": "/tmp"} | dict(extra)  # noqa: S108 - the sandbox's own /tmp
