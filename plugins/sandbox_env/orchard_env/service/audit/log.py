"""The audit log: JSON lines, written by a thread of its own, so that no request waits for a disk."""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import time
from collections import deque

import orjson

from orchard_env.service.audit.settings import AuditSettings
from orchard_env.service.redaction import redacted
from orchard_env.service.seams import AuditEvent

_LOG = logging.getLogger("orchard.service.audit")
_AGAIN_S = 1.0
_BATCH = 1024


class AuditLog:
    """Honours `Audit`. Lines are appended, each whole, so that several processes may share a file and a tool
    may copy and truncate it; a file that was moved away is made anew with the next line, without a signal."""

    def __init__(self, settings: AuditSettings) -> None:
        """Raises OSError when the file cannot be made."""
        self._settings = settings
        self._waiting: deque[bytes] = deque()
        self._wake = threading.Condition()
        self._ending = False
        self._dropped = 0
        self._fault = ""
        self._file = self._open()
        self._synced_at = 0.0
        self._thread = threading.Thread(target=self._write_all, name="audit", daemon=True)
        self._thread.start()

    @property
    def fault(self) -> str:
        """Why events cannot be written, in words; empty when they can."""
        return self._fault

    def record(self, event: AuditEvent) -> None:
        """See Audit."""
        line = self._line(event)
        with self._wake:
            if len(self._waiting) >= self._settings.queue:
                self._dropped += 1
                return
            self._waiting.append(line)
            self._wake.notify()

    def reopen(self) -> None:
        """Go on in a new file of the same name; done by itself, too, when the old one was moved away."""
        with self._wake:
            self._waiting.append(b"")
            self._wake.notify()

    def close(self) -> None:
        """Write what waits, and force it to disk. Events after that are lost."""
        with self._wake:
            self._ending = True
            self._wake.notify()
        self._thread.join(timeout=10.0)

    def _line(self, event: AuditEvent) -> bytes:
        whole: dict[str, object] = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(event.at))
            + f".{int(event.at % 1 * 1000):03d}Z",
            "request_id": event.request_id,
            "tenant": event.tenant,
            "key_id": event.key_id,
            "action": event.action,
            "sandbox_id": event.sandbox_id,
            "status": event.status,
            "client": event.client,
            **self._of_command(event.command),
        }
        try:
            return orjson.dumps(whole) + b"\n"
        except TypeError:  # half a surrogate pair in a name or command
            mended = {key: _mended(value) for key, value in whole.items()}
            return orjson.dumps(mended) + b"\n"

    def _of_command(self, command: str) -> dict[str, object]:
        if not command or self._settings.commands == "none":
            return {}
        if self._settings.commands == "hash":
            digest = hashlib.sha256(command.encode("utf-8", "surrogatepass")).hexdigest()
            return {"command_sha256": digest, "command_chars": len(command)}
        # Redacted first: a cut secret has no form by which it could be known.
        return {"command": redacted(command)[: self._settings.cut_chars], "command_chars": len(command)}

    def _open(self) -> int:
        self._settings.path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        return os.open(self._settings.path, flags, 0o600)

    def _write_all(self) -> None:
        while True:
            with self._wake:
                while not self._waiting and not self._ending:
                    self._wake.wait(self._settings.sync_s)
                    if not self._waiting:
                        break
                batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
                dropped, ended = self._dropped, self._ending and not batch
            if self._write(batch, dropped):
                self._sync(ended)
                with self._wake:
                    self._dropped -= dropped
            else:
                with self._wake:
                    self._waiting.extendleft(reversed(batch))
                if self._ending:
                    return
                time.sleep(_AGAIN_S)
            if ended:
                os.close(self._file)
                return

    def _write(self, batch: list[bytes], dropped: int) -> bool:
        lines = [line for line in batch if line]
        if dropped:
            note = {"at": time.time(), "action": "audit.dropped", "count": dropped}
            lines.insert(0, orjson.dumps(note) + b"\n")
        try:
            if self._moved():
                fresh = self._open()
                os.close(self._file)
                self._file = fresh
            _append(self._file, b"".join(lines))
        except OSError as error:
            if not self._fault:
                _LOG.error("the audit log %s cannot be written: %s", self._settings.path, error.strerror)
            self._fault = f"the audit log cannot be written: {error.strerror}"
            return False
        self._fault = ""
        return True

    def _moved(self) -> bool:
        try:
            there = self._settings.path.stat()
        except FileNotFoundError:
            return True
        ours = os.fstat(self._file)
        return (there.st_ino, there.st_dev) != (ours.st_ino, ours.st_dev)

    def _sync(self, ended: bool) -> None:
        policy, now = self._settings.sync, time.monotonic()
        due = policy == "interval" and now - self._synced_at >= self._settings.sync_s
        if policy == "always" or due or (ended and policy != "never"):
            os.fsync(self._file)
            self._synced_at = now


def _append(file: int, data: bytes) -> None:
    """One write where the kernel takes it whole, which it does unless the disk is full."""
    before = os.fstat(file).st_size
    written = 0
    try:
        while written < len(data):
            written += os.write(file, data[written:])
    except OSError:
        if written:
            os.ftruncate(file, before)  # no half line stays; the whole batch is tried again
        raise


def _mended(value: object) -> object:
    return (
        value.encode("utf-8", "surrogatepass").decode("utf-8", "replace") if isinstance(value, str) else value
    )
