"""Unix sockets that only this user can reach, by paths longer than the kernel's 108 bytes too."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_BACKLOG = 256


@contextmanager
def short_name(path: Path) -> Iterator[str]:
    """Another name of `path`, short enough for a socket address while the context is open."""
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)


def listen_at(path: Path) -> socket.socket:
    """A listening socket at `path`, replacing what was there. Raises OSError."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    try:
        with short_name(path) as name:
            listener.bind(name)
        path.chmod(0o600)
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener
