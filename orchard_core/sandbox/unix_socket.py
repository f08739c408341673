"""Listening Unix sockets that only this user can reach."""

from __future__ import annotations

import os
import socket
from pathlib import Path

_BACKLOG = 256


def listen_at(path: Path) -> socket.socket:
    """A listening socket at `path`, replacing what was there; the name may be longer than the kernel's 108
    bytes. Raises OSError."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listener.bind(f"/proc/self/fd/{directory}/{path.name}")
        path.chmod(0o600)
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    finally:
        os.close(directory)
    return listener
