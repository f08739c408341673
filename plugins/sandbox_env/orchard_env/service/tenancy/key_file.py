"""Tenants and keys in a file of this machine, or in a volume that replicas share."""

from __future__ import annotations

import fcntl
import logging
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from orchard_core import ConfigError
from orchard_env.service.tenancy.records import Access, AccessIndex

_LOG = logging.getLogger("orchard.service.tenancy")
_Stamp = tuple[int, int, int]


def read_key_file(path: Path) -> Access:
    """What the file holds. Raises ConfigError when it is missing, broken, or others may write to it."""
    try:
        with path.open("rb") as file:
            # Others may read it: it holds hashes of random bits, and a mounted Secret is world-readable.
            if os.fstat(file.fileno()).st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise ConfigError(
                    f"others may write to the key file {path}, and so give themselves keys",
                    hint=f"chmod 600 {path}",
                )
            raw = file.read()
    except OSError as error:
        raise ConfigError(
            f"the key file {path} cannot be read: {error.strerror}",
            hint=f"make one with: orchard env keys create NAME --keys {path}",
        ) from error
    try:
        return Access.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "its top"
        raise ConfigError(
            f"the key file {path} is broken at {where}: {first['msg']}",
            hint="restore it from a copy, or make it anew; orchard env keys never leaves a half-written one",
        ) from error


def edit_key_file(path: Path, change: Callable[[Access], Access]) -> Access:
    """Change the file, whole or not at all, one editor at a time; it is made when missing, for its owner
    alone. Raises ConfigError as reading it does."""
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path):
        before = read_key_file(path) if path.exists() else Access()
        after = change(before)
        _write(path, after)
    return after


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    lock = os.open(f"{path}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _write(path: Path, access: Access) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(access.model_dump_json(indent=1).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class FileKeys:
    """Tenants and keys of a file, as it is now: each look asks the file system whether it has changed, so
    that a revoked key is refused with the very next request."""

    def __init__(self, path: Path) -> None:
        """Raises ConfigError as reading it does."""
        self._path = path
        self._stamp = _stamp(path)
        self._index = _index(read_key_file(path))
        self.fault = ""
        """Why the file cannot be read; what was read last goes on being true meanwhile."""

    @property
    def index(self) -> AccessIndex:
        """All of it."""
        stamp = _stamp(self._path)
        if stamp != self._stamp:
            self._stamp = stamp
            self._reload()
        return self._index

    def _reload(self) -> None:
        try:
            self._index = _index(read_key_file(self._path))
            self.fault = ""
            _LOG.info("the key file was read anew: %d keys", len(self._index.keys))
        except ConfigError as error:
            self.fault = error.message
            _LOG.error("%s; the keys that were read last stay good", error.message)

    async def start(self) -> None:
        """Nothing to wait for."""

    async def close(self) -> None:
        """Nothing to let go of."""


def _index(access: Access) -> AccessIndex:
    return AccessIndex(access.tenants, access.keys)


def _stamp(path: Path) -> _Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size
