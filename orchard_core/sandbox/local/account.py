"""Who commands run as. One user only is mapped into a sandbox: this one."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from orchard_core.errors import SandboxUnsupported
from orchard_core.types.sandbox import ImageRef

_PLAIN_UID = 1000
_KNOWN = {"root": 0, "nobody": 65534}
_ID_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The sandbox's user as seen from inside; outside it is the driver's own user."""

    name: str
    """For /etc/passwd and USER."""
    uid: int
    """User id inside."""
    gid: int
    """Group id inside."""
    home: str
    """HOME, made at creation."""

    @property
    def passwd(self) -> str:
        """Text of a synthetic /etc/passwd."""
        lines = [
            "root:x:0:0:root:/root:/bin/bash",
            "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin",
        ]
        if self.name not in _KNOWN:
            lines.insert(1, f"{self.name}:x:{self.uid}:{self.gid}::{self.home}:/bin/bash")
        return "\n".join(lines) + "\n"

    @property
    def group(self) -> str:
        """Text of a synthetic /etc/group."""
        lines = ["root:x:0:", "tty:x:5:", "nogroup:x:65534:"]
        if self.gid not in {0, 5, 65534}:
            lines.insert(1, f"{self.name}:x:{self.gid}:")
        return "\n".join(lines) + "\n"


ROOT = Account(name="root", uid=0, gid=0, home="/root")


def resolve_account(user: str | None, image: ImageRef) -> Account:
    """`None` is root; `uid[:gid]` is taken as it is; a name is looked up in a rootfs image, and in the host
    image root is 0, nobody 65534 and any other name 1000. Raises SandboxUnsupported.
    """
    if user is None:
        return ROOT
    numbers = re.fullmatch(r"(\d+)(?::(\d+))?", user)
    if numbers:
        uid, gid = int(numbers[1]), int(numbers[2] or numbers[1])
        if max(uid, gid) > _ID_MAX:
            raise SandboxUnsupported(f"user id {user} is out of range", hint=f"use at most {_ID_MAX}")
        known = {number: name for name, number in _KNOWN.items()}
        return _named(known.get(uid, f"user{uid}"), uid, gid)
    if not re.fullmatch(r"[a-z_][a-z0-9_-]{0,31}", user):
        raise SandboxUnsupported(f"user {user!r} is not a user name", hint="write a name or uid[:gid]")
    if image.kind == "rootfs":
        return _from_passwd(user, Path(image.value))
    uid = _KNOWN.get(user, _PLAIN_UID)
    return _named(user, uid, uid)


def _named(name: str, uid: int, gid: int) -> Account:
    return Account(name=name, uid=uid, gid=gid, home="/root" if uid == 0 else f"/home/{name}")


def _from_passwd(user: str, root: Path) -> Account:
    """The image's own entry. Its passwd is read without following a link out of the image."""
    try:
        descriptor = os.open(root / "etc/passwd", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, encoding="utf-8", errors="replace") as lines:
            entries = [line.rstrip("\n").split(":") for line in lines]
    except OSError:
        entries = []
    for fields in entries:
        if len(fields) == 7 and fields[0] == user and fields[2].isdigit() and fields[3].isdigit():
            home = fields[5] if fields[5].startswith("/") else "/"
            return Account(name=user, uid=int(fields[2]), gid=int(fields[3]), home=home)
    raise SandboxUnsupported(
        f"the image {root} has no user {user!r}", hint="use a name of its /etc/passwd or uid[:gid]"
    )
