"""Which driver a container belongs to, told so that its death can be proved."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict


class Owner(BaseModel):
    """A process of one boot of one machine. A process id comes again; with its start time it does not."""

    model_config = ConfigDict(frozen=True)

    boot: str
    """The kernel's random id of this boot."""
    namespace: int
    """The PID namespace: another one's process ids mean nothing here."""
    user: int
    """User id."""
    pid: int
    """Process id; 0 for nobody: let go of, to be adopted."""
    started: int
    """Start time of the process, clock ticks since boot."""

    @classmethod
    def me(cls) -> Owner:
        """This process."""
        here = _here()
        pid = os.getpid()
        return cls(
            boot=here.boot, namespace=here.namespace, user=os.geteuid(), pid=pid, started=start_time(pid) or 0
        )

    def nobody(self) -> Owner:
        """The same place without a process."""
        return self.model_copy(update={"pid": 0, "started": 0})

    def tag(self) -> str:
        """The form that a tag of an image can hold."""
        return f"{self.boot}.{self.namespace}.{self.user}.{self.pid}.{self.started}"

    @classmethod
    def from_tag(cls, text: str) -> Owner | None:
        """The inverse; None for any other text."""
        names = ("boot", "namespace", "user", "pid", "started")
        parts = text.split(".")
        if len(parts) != len(names) or not all(part.isdecimal() for part in parts[1:]):
            return None
        return cls.model_validate(dict(zip(names, parts, strict=True)))

    @property
    def of_this_boot(self) -> bool:
        """Whether it was made on this machine, since it was started last."""
        return self.boot == _here().boot

    def is_dead(self) -> bool:
        """Provably: a process of this boot, seen from here, that is no more. Of others nothing is known."""
        here = _here()
        comparable = (self.boot, self.namespace, self.user) == (here.boot, here.namespace, os.geteuid())
        return comparable and self.pid > 0 and start_time(self.pid) != self.started

    def is_alive(self) -> bool:
        """Provably: the very process runs, as seen from here."""
        here = _here()
        comparable = (self.boot, self.namespace) == (here.boot, here.namespace)
        return comparable and self.pid > 0 and start_time(self.pid) == self.started


@dataclass(frozen=True, slots=True, kw_only=True)
class _Here:
    boot: str
    """As in Owner."""
    namespace: int
    """As in Owner."""


def _here() -> _Here:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return _Here(boot=boot, namespace=Path("/proc/self/ns/pid").stat().st_ino)


def start_time(pid: int) -> int | None:
    """Clock ticks since boot; None when no such process lives; a zombie does not."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])
