"""A disk that forgets: operations on a real directory, cut at a chosen one, and what a power cut leaves."""

from __future__ import annotations

import random
import shutil
import threading
from dataclasses import dataclass, field
from pathlib import Path

from orchard_core.rollout.store.files import Appender, DiskFiles, Lock

LOSSES = ("lost", "torn", "zeroed", "kept")
"""What becomes of bytes and names that were never synced."""


class PowerCut(BaseException):
    """The machine is off: nothing after this happens."""


@dataclass
class Node:
    data: bytearray = field(default_factory=bytearray)
    durable: bytes = b""


class ForgetfulFiles:
    """Honours `Files`. After `cut_after` operations every further one raises PowerCut; `restore` then
    leaves the directory as a disk might be found."""

    def __init__(self, root: Path, *, cut_after: int | None = None) -> None:
        self.root = root
        self.operations = 0
        self._cut_after = cut_after
        self._disk = DiskFiles()
        self._mutex = threading.RLock()
        self._names: dict[Path, Node] = {}
        self._durable_names: dict[Path, Node] = {}
        self._dirs: set[Path] = set()
        self._durable_dirs: set[Path] = set()
        if root.exists():
            self._adopt()

    @property
    def off(self) -> bool:
        return self._cut_after is not None and self.operations >= self._cut_after

    def append(self, path: Path) -> Appender:
        with self._mutex:
            self.step()
            if path not in self._names:
                path.touch()
                self._names[path] = Node()
            return ForgetfulAppender(self, path, self._names[path])

    def replace(self, source: Path, target: Path) -> None:
        with self._mutex:
            self.step()
            source.replace(target)
            self._names[target] = self._names.pop(source)

    def remove(self, path: Path) -> None:
        with self._mutex:
            self.step()
            path.unlink(missing_ok=True)
            self._names.pop(path, None)

    def make_dir(self, path: Path) -> None:
        with self._mutex:
            self.step()
            path.mkdir(parents=True, exist_ok=True)
            self._dirs |= {path, *path.parents}

    def sync_dir(self, path: Path) -> None:
        with self._mutex:
            self.step()
            for known in [name for name in self._durable_names if name.parent == path]:
                if known not in self._names:
                    del self._durable_names[known]
            self._durable_names |= {name: node for name, node in self._names.items() if name.parent == path}
            self._durable_dirs |= {folder for folder in self._dirs if folder.parent == path}

    def lock(self, path: Path) -> Lock:
        self.step()
        return self._disk.lock(path)

    def step(self) -> None:
        """One operation begins, unless the power is off."""
        with self._mutex:
            if self.off:
                raise PowerCut
            self.operations += 1

    def restore(self, loss: str, *, seed: int = 0) -> None:
        """Turn the power on again: the directory as the disk kept it."""
        draw = random.Random(seed)
        names = self._durable_names if loss == "lost" else self._names
        kept = {path: _surviving(node, loss, draw) for path, node in names.items()}
        dirs = self._durable_dirs if loss == "lost" else self._dirs
        shutil.rmtree(self.root, ignore_errors=True)
        for folder in sorted(dirs):
            if folder.is_relative_to(self.root) and _reachable(folder, dirs, self.root):
                folder.mkdir(parents=True, exist_ok=True)
        for path, data in kept.items():
            if path.parent.exists():
                path.write_bytes(data)

    def _adopt(self) -> None:
        """What is there at the start is durable."""
        for path in self.root.rglob("*"):
            if path.is_dir():
                self._dirs.add(path)
            else:
                data = path.read_bytes()
                self._names[path] = Node(data=bytearray(data), durable=data)
        self._dirs |= {self.root, *self.root.parents}
        self._durable_dirs = set(self._dirs)
        self._durable_names = dict(self._names)


class ForgetfulAppender:
    """Honours `Appender`."""

    def __init__(self, files: ForgetfulFiles, path: Path, node: Node) -> None:
        self._files = files
        self._path = path
        self._node = node
        self._out = path.open("r+b", buffering=0)

    @property
    def size(self) -> int:
        return len(self._node.data)

    def write(self, data: bytes) -> None:
        self._files.step()
        self._out.seek(0, 2)
        self._out.write(data)
        self._node.data += data

    def sync(self) -> None:
        self._files.step()
        self._node.durable = bytes(self._node.data)

    def truncate(self, size: int) -> None:
        self._files.step()
        self._out.truncate(size)
        del self._node.data[size:]

    def close(self) -> None:
        self._out.close()


def _surviving(node: Node, loss: str, draw: random.Random) -> bytes:
    data, durable = bytes(node.data), node.durable
    if loss == "lost" or data == durable:
        return durable
    if loss == "kept":
        return data
    extra = max(0, len(data) - len(durable))
    cut = len(durable) + draw.randrange(extra + 1) if extra else len(data)
    if loss == "torn":
        return data[:cut]
    return data[:cut] + b"\0" * (len(data) - cut)


def _reachable(folder: Path, dirs: set[Path], root: Path) -> bool:
    while folder != root:
        if folder not in dirs:
            return False
        folder = folder.parent
    return True
