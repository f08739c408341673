"""One container's directory on the host.

    ROOT/agent-SIZE-TIME       the agent's binary, shown read-only in every container
    ROOT/boxes/BOX/owner       JSON: the driver that answers for the container
    ROOT/boxes/BOX/token       the root token of its agent; only this user can read it
    ROOT/boxes/BOX/agent.sock  the agent's socket
    ROOT/boxes/BOX/run/        what the container sees, and only while its agent starts

The agent takes the token's file away as it reads it, and makes its socket in `run`. Before any command can
run the socket is moved out and the directory removed: nothing inside has a name for the socket, to take its
place and be spoken to instead of the agent, and nothing can be written to the directory, which is no more.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path

from orchard_core import SandboxUnavailable, agent_binary
from orchard_sandbox_container.owner import Owner

_BOX = re.compile(r"[a-z0-9][a-z0-9-]{0,80}")
_CHOOSE = "set the provider's option state_dir to a directory of your own that the engine sees too"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxRoot:
    """Where all boxes of this user are."""

    path: Path
    """ROOT."""
    agent: Path
    """The agent's binary as the engine sees it."""

    def box(self, name: str) -> Box | None:
        """The box of that name; None for what is no name: labels can be written by others."""
        return Box(path=self.path / "boxes" / name) if _BOX.fullmatch(name) else None

    def new_box(self, sandbox_id: str) -> Box:
        """A box that nobody has. Raises OSError."""
        box = Box(path=self.path / "boxes" / f"{sandbox_id}-{secrets.token_hex(4)}")
        box.path.mkdir(mode=0o700)
        box.own(Owner.me())
        return box

    def boxes(self) -> list[Box]:
        """All that are there."""
        return [Box(path=path) for path in sorted((self.path / "boxes").iterdir()) if path.is_dir()]


def open_root(chosen: str | None) -> BoxRoot:
    """Make the directories, which no other user can look into. Raises SandboxUnavailable."""
    home = chosen or os.environ.get("ORCHARD_STATE_DIR") or f"/var/tmp/orchard-{os.geteuid()}"  # noqa: S108
    path = Path(home).absolute() / "containers"
    try:
        for each in (path.parent, path, path / "boxes"):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
            info = each.lstat()
            if each.is_symlink() or info.st_uid != os.geteuid():
                raise SandboxUnavailable(f"{each} belongs to another user or is a link", hint=_CHOOSE)
        path.chmod(0o700)
        return BoxRoot(path=path, agent=_copied_agent(path))
    except OSError as error:
        raise SandboxUnavailable(f"cannot use {path} for containers: {error}", hint=_CHOOSE) from error


def _copied_agent(path: Path) -> Path:
    """A copy: an upgrade of the package must not change what running containers show, and an engine may not
    see where packages are."""
    source = agent_binary()
    info = source.stat()
    target = path / f"agent-{info.st_size}-{info.st_mtime_ns}"
    if not target.exists():
        draft = target.with_name(f".{target.name}-{secrets.token_hex(4)}")
        shutil.copyfile(source, draft)
        draft.chmod(0o755)
        draft.rename(target)
    return target


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One container's."""

    path: Path
    """ROOT/boxes/BOX."""

    @property
    def run(self) -> Path:
        """What the container sees."""
        return self.path / "run"

    @property
    def socket(self) -> Path:
        """Where the agent is reached."""
        return self.path / "agent.sock"

    def arm(self, token: str) -> None:
        """Make ready for a new agent that shall know `token`. Raises OSError."""
        shutil.rmtree(self.run, ignore_errors=True)
        self.run.mkdir(mode=0o700)
        for path in (self.run / "token", self.path / "token"):
            path.unlink(missing_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(token)

    def seal(self) -> bool:
        """Once the agent listens, take its socket out of the container's sight; False when it does not yet.
        Raises OSError."""
        try:
            (self.run / "agent.sock").rename(self.socket)
        except FileNotFoundError:
            return False
        shutil.rmtree(self.run)
        return True

    def listens(self) -> bool:
        """Somebody takes connections at the socket, or is too busy to. Blocking, a moment."""
        try:
            directory = os.open(self.path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(1.0)
                client.connect(f"/proc/self/fd/{directory}/{self.socket.name}")  # of any length
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except OSError:
            return True
        finally:
            os.close(directory)
        return True

    def token(self) -> str:
        """The agent's root token. Raises OSError."""
        return (self.path / "token").read_text()

    def own(self, owner: Owner) -> None:
        """Say who answers for it. Raises OSError."""
        draft = self.path / f"owner-{secrets.token_hex(4)}"
        draft.write_text(owner.model_dump_json())
        draft.rename(self.path / "owner")

    def owner(self) -> Owner | None:
        """Who answers for it; None when that cannot be read."""
        try:
            return Owner.model_validate_json((self.path / "owner").read_text())
        except (OSError, ValueError):
            return None

    def remove(self) -> None:
        """All of it; fine when it is gone."""
        shutil.rmtree(self.path, ignore_errors=True)
