"""What answers in a sandbox's place when its agent was ended from inside: whatever a test wants said."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Saying = Callable[[], Iterator[bytes]]
"""What is said to one connection, once a request has come: pieces, without end if need be."""

_HEAD = b"\r\n\r\n"


class ReplacedAgent:
    """Listens where the agent did."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX)
        self._closed = False
        self.saying: Saying = lambda: iter(())
        """What it says from now on."""
        self.most = 0
        """Bytes that were taken of it on one connection, at most."""

    def take_the_place(self) -> None:
        """End the real agent, and listen in its stead."""
        os.killpg(int((self._path / "pid").read_text()), signal.SIGKILL)
        where = self._path / "agent.sock"
        where.unlink()
        folder = os.open(self._path, os.O_PATH)
        try:
            self._socket.bind(f"/proc/self/fd/{folder}/{where.name}")
        finally:
            os.close(folder)
        self._socket.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Listen no more."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                peer, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(peer,), daemon=True).start()

    def _answer(self, peer: socket.socket) -> None:
        said = 0
        with peer, contextlib.suppress(OSError):
            heard = b""
            while _HEAD not in heard:
                if not (piece := peer.recv(1 << 16)):
                    return
                heard += piece
            for piece in self.saying():
                left = memoryview(piece)
                while left:
                    sent = peer.send(left)
                    said, left = said + sent, left[sent:]
                    self.most = max(self.most, said)
            # Closed with something unread it would be reset, and what was said perhaps never heard.
            peer.shutdown(socket.SHUT_WR)
            while peer.recv(1 << 16):
                pass


@contextmanager
def replaced(path: Path) -> Iterator[ReplacedAgent]:
    """The agent of the sandbox that lives in this directory, replaced."""
    agent = ReplacedAgent(path)
    agent.take_the_place()
    try:
        yield agent
    finally:
        agent.close()
