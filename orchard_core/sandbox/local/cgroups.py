"""Limits by cgroup, version 1 and 2, each controller on its own: hosts mix them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

CONTROLLERS = ("memory", "cpu", "pids")
_CPU_PERIOD_US = 100_000
_KILL_ROUNDS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A place where one controller can be used."""

    controller: str
    """memory, cpu or pids."""
    version: str
    """cgroup-v1 or cgroup-v2."""
    parent: Path
    """The directory below which this driver may make its own."""


@dataclass(slots=True, kw_only=True)
class CgroupPlan:
    """The controllers this driver may use."""

    name: str
    """Name of this driver's directory in each hierarchy."""
    slots: tuple[Slot, ...] = ()
    """At most one a controller."""

    @property
    def limits(self) -> Mapping[str, str]:
        """Controller -> what enforces it, as capabilities tell it."""
        return {slot.controller: slot.version for slot in self.slots}

    @property
    def bases(self) -> list[Path]:
        """This driver's directory in each hierarchy."""
        return sorted({slot.parent / self.name for slot in self.slots})

    def create(self, sandbox_id: str, values: Mapping[str, float]) -> SandboxCgroup:
        """Directories for one sandbox, with its limits: memory in bytes, cpu in cores, pids as a count.

        Controllers without a limit are left alone: moving a process costs the kernel milliseconds for each.
        """
        group = SandboxCgroup()
        for slot in (slot for slot in self.slots if slot.controller in values):
            directory = slot.parent / self.name / sandbox_id
            if directory not in group.directories:
                directory.mkdir(parents=True, exist_ok=True)
                group.directories.append(directory)
                if slot.version == "cgroup-v1":
                    group.homes[directory] = slot.parent
            _apply(directory, slot, values[slot.controller])
        return group

    def remove(self) -> None:
        """Remove this driver's directories and what is in them."""
        for base in self.bases:
            remove_cgroup_tree(base)


@dataclass(slots=True, kw_only=True)
class SandboxCgroup:
    """One sandbox's directories."""

    directories: list[Path] = field(default_factory=list)
    """One a hierarchy."""
    homes: dict[Path, Path] = field(default_factory=dict)
    """Directory of version 1 -> the cgroup that the driver's threads live in."""

    @contextmanager
    def births(self) -> Iterator[None]:
        """What this thread starts meanwhile is born inside, as far as version 1 goes.

        A thread that moves itself is spared the kernel's global lock, which costs any other move 7 ms.
        """
        moved: list[Path] = []
        try:
            for directory, home in self.homes.items():
                (directory / "tasks").write_text("0")
                moved.append(home)
            yield
        finally:
            for home in moved:
                (home / "tasks").write_text("0")

    def add(self, pid: int) -> None:
        """Put a process, with all its threads, inside where it was not born there."""
        for directory in self.directories:
            if directory not in self.homes:
                (directory / "cgroup.procs").write_text(str(pid))

    def oom_kills(self) -> int:
        """How many processes the memory limit has killed so far."""
        for directory in self.directories:
            for name in ("memory.events", "memory.oom_control"):
                for line in _read(directory / name).splitlines():
                    if line.startswith("oom_kill "):
                        return int(line.split()[1])
        return 0

    def remove(self) -> None:
        """Kill what is inside and remove the directories."""
        for directory in self.directories:
            remove_cgroup_tree(directory)


def _apply(directory: Path, slot: Slot, value: float) -> None:
    """Write one limit. Swap, where it is counted, is part of the memory limit."""
    quota = str(int(value * _CPU_PERIOD_US))
    files: dict[tuple[str, str], list[tuple[str, str]]] = {
        ("memory", "cgroup-v1"): [
            ("memory.limit_in_bytes", str(int(value))),
            ("?memory.memsw.limit_in_bytes", str(int(value))),
        ],
        ("memory", "cgroup-v2"): [("memory.max", str(int(value))), ("?memory.swap.max", "0")],
        ("cpu", "cgroup-v1"): [("cpu.cfs_period_us", str(_CPU_PERIOD_US)), ("cpu.cfs_quota_us", quota)],
        ("cpu", "cgroup-v2"): [("cpu.max", f"{quota} {_CPU_PERIOD_US}")],
        ("pids", "cgroup-v1"): [("pids.max", str(int(value)))],
        ("pids", "cgroup-v2"): [("pids.max", str(int(value)))],
    }
    for name, text in files[slot.controller, slot.version]:
        path = directory / name.lstrip("?")
        if name.startswith("?") and not path.exists():
            continue
        path.write_text(text)


def possible_bases(name: str, proc: Path = Path("/proc/self")) -> list[Path]:
    """Every directory that `find_plan` may make, so that a reaper knows them before they are there."""
    own = _own_cgroups(_read(proc / "cgroup"))
    parents: set[Path] = set()
    for mount_point, root, kind, options in _cgroup_mounts(_read(proc / "mountinfo")):
        for key in [""] if kind == "cgroup2" else options:
            if key in own:
                parents.update(_up_to(mount_point, _directory(mount_point, root, own[key])))
    return sorted(parent / name for parent in parents)


def _up_to(top: Path, own: Path) -> list[Path]:
    """`own` and its ancestors, the nearest first, `top` the last."""
    ancestors = [own, *own.parents]
    return ancestors[: len(ancestors) - len(top.parents)]


def find_plan(name: str, proc: Path = Path("/proc/self")) -> CgroupPlan:
    """Ask the kernel which controllers this process may use below its own cgroups; often none."""
    own = _own_cgroups(_read(proc / "cgroup"))
    slots: dict[str, Slot] = {}
    for mount_point, root, kind, options in _cgroup_mounts(_read(proc / "mountinfo")):
        if kind == "cgroup":
            for controller in set(CONTROLLERS).intersection(options) & set(own):
                parent = _directory(mount_point, root, own[controller])
                if _usable(parent / name):
                    slots[controller] = Slot(controller=controller, version="cgroup-v1", parent=parent)
        elif "" in own:
            for controller, parent in _v2_slots(
                mount_point, _directory(mount_point, root, own[""]), name
            ).items():
                slots.setdefault(controller, Slot(controller=controller, version="cgroup-v2", parent=parent))
    return CgroupPlan(name=name, slots=tuple(slots[key] for key in CONTROLLERS if key in slots))


def _own_cgroups(text: str) -> dict[str, str]:
    """Controller -> path; the unified hierarchy's key is the empty string."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            found[controller] = path
    return found


def _cgroup_mounts(text: str) -> list[tuple[Path, str, str, list[str]]]:
    """(mount point, root inside the hierarchy, cgroup or cgroup2, super options) of each cgroup mount."""
    found = []
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if kind in {"cgroup", "cgroup2"}:
            fields = before.split(" ")
            found.append((Path(fields[4]), fields[3], kind, options.split(",")))
    return found


def _directory(mount_point: Path, root: str, path: str) -> Path:
    """Where a cgroup's directory is: a container may see only a part of the hierarchy."""
    inside = os.path.relpath(path, root) if path.startswith(root) else "."
    return mount_point / inside


def _usable(base: Path) -> bool:
    trial = base / "trial"
    try:
        trial.mkdir(parents=True)
        usable = os.access(trial / "cgroup.procs", os.W_OK)
        trial.rmdir()
    except OSError:
        return False
    return usable


def _v2_slots(mount_point: Path, own: Path, name: str) -> dict[str, Path]:
    """The nearest ancestor that is delegated to us and may hand its controllers on.

    A cgroup with processes cannot, except the root, so the own one is seldom the right one; its parent, in a
    systemd user session, is. Moving a process needs write access to the common ancestor, which is that
    parent.
    """
    for parent in _up_to(mount_point, own):
        base = parent / name
        try:
            base.mkdir()
        except OSError:
            continue
        usable = _delegate(parent, base) if os.access(parent / "cgroup.procs", os.W_OK) else set()
        if usable and _usable(base):
            return dict.fromkeys(usable, parent)
        base.rmdir()
    return {}


def _delegate(parent: Path, base: Path) -> set[str]:
    """Hand the controllers down to `base` and from it to its children; those that arrived."""
    for controller in CONTROLLERS:
        for directory in (parent, base):
            try:
                (directory / "cgroup.subtree_control").write_text(f"+{controller}")
            except OSError:
                break
    return set(CONTROLLERS).intersection(_read(base / "cgroup.subtree_control").split())


def remove_cgroup_tree(base: Path) -> bool:
    """Kill every process in a cgroup and its children and remove them; True when they are gone."""
    with suppress(OSError):  # nothing is left inside, nearly always
        base.rmdir()
        return True
    for _ in range(_KILL_ROUNDS):
        for directory in _below(base):
            _kill(directory)
            try:
                directory.rmdir()
            except OSError:
                continue
        if not base.is_dir():
            return True
        time.sleep(0.01)
    return False


def _below(base: Path) -> list[Path]:
    """Deepest first, `base` last."""
    return [Path(path) for path, _, _ in os.walk(base, topdown=False)]


def _kill(directory: Path) -> None:
    """A process id read from the cgroup itself is of this moment, so that it cannot be a stranger's."""
    if (directory / "cgroup.kill").exists():
        try:
            (directory / "cgroup.kill").write_text("1")
        except OSError:
            return
        return
    for pid in _read(directory / "cgroup.procs").split():
        if int(pid) > 0 and int(pid) != os.getpid():
            try:
                os.kill(int(pid), signal.SIGKILL)
            except OSError:
                continue


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
