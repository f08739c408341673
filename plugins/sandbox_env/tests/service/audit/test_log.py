"""What the audit log keeps, through rotation, full disks and hostile values."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from orchard_env.service.audit.log import AuditLog
from orchard_env.service.audit.settings import AuditSettings
from orchard_env.service.seams import AuditEvent
from orchard_env.service.tenancy.secret import new_secret

Open = Callable[..., AuditLog]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "audit.jsonl"


@pytest.fixture
def opened(path: Path) -> Iterator[Open]:
    logs: list[AuditLog] = []

    def open_log(**settings: Any) -> AuditLog:
        logs.append(AuditLog(AuditSettings(**{"path": path, **settings})))
        return logs[-1]

    yield open_log
    for log in logs:
        log.close()


def event(number: int = 0, **fields: Any) -> AuditEvent:
    known = {"at": 1700000000.25, "request_id": f"r{number}", "tenant": "alice", "key_id": "0" * 12}
    return AuditEvent(**{**known, "action": "exec", "sandbox_id": "sb-1", "status": 200, **fields})


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def until(look: Callable[[], bool]) -> None:
    bound = time.monotonic() + 30
    while not look():
        assert time.monotonic() < bound
        time.sleep(0.005)


def test_each_event_is_a_line_of_who_did_what_to_what(opened: Open, path: Path) -> None:
    log = opened()
    for number in range(100):
        log.record(event(number))
    log.close()
    found = lines(path)
    assert [line["request_id"] for line in found] == [f"r{number}" for number in range(100)]
    assert found[0]["at"] == "2023-11-14T22:13:20.250Z"
    assert (found[0]["tenant"], found[0]["action"], found[0]["sandbox_id"]) == ("alice", "exec", "sb-1")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("sync", ["always", "interval", "never"])
def test_a_line_is_written_without_waiting_for_the_end(opened: Open, path: Path, sync: str) -> None:
    log = opened(sync=sync)
    log.record(event())
    until(lambda: len(lines(path)) == 1)


def test_a_command_is_kept_as_its_hash_its_beginning_or_not_at_all(opened: Open, path: Path) -> None:
    key = new_secret().text
    command = f"curl -H 'X-API-Key: {key}' http://host && " + "x" * 1000
    for kept in ("none", "hash", "cut"):
        log = opened(commands=kept, cut_chars=60)
        log.record(event(command=command))
        log.close()
    nothing, hashed, cut = lines(path)
    assert not any("command" in name for name in nothing)
    assert hashed["command_sha256"] == hashlib.sha256(command.encode()).hexdigest()
    assert len(cut["command"]) == 60
    assert (hashed["command_chars"], cut["command_chars"]) == (len(command), len(command))
    assert key[17:] not in path.read_text()


def test_a_file_that_was_moved_away_is_made_anew_and_no_line_is_lost(opened: Open, path: Path) -> None:
    log, done = opened(), threading.Event()

    def write() -> None:
        number = 0
        while not done.is_set() or number < 500:
            log.record(event(number))
            number += 1
            if number % 50 == 0:
                time.sleep(0.002)

    writing = threading.Thread(target=write)
    writing.start()
    moved = []
    for number in range(5):
        until(lambda: path.exists() and path.stat().st_size > 0)
        moved.append(path.rename(path.with_suffix(f".{number}")))
    log.reopen()
    done.set()
    writing.join()
    log.close()
    numbers = [int(line["request_id"][1:]) for file in [*moved, path] for line in lines(file)]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) >= 500


def test_a_file_that_was_copied_and_truncated_goes_on_from_its_beginning(opened: Open, path: Path) -> None:
    log = opened()
    log.record(event(1))
    until(lambda: len(lines(path)) == 1)
    os.truncate(path, 0)
    log.record(event(2))
    log.close()
    assert [line["request_id"] for line in lines(path)] == ["r2"]


def test_two_processes_share_a_file_without_tearing_lines(opened: Open, path: Path) -> None:
    logs = [opened(), opened()]
    threads = [
        threading.Thread(target=lambda log=log: [log.record(event(n, action="x" * 3000)) for n in range(300)])
        for log in logs
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for log in logs:
        log.close()
    assert len(lines(path)) == 600


def test_a_disk_without_room_is_told_and_what_waited_is_written_when_there_is_room(
    opened: Open, path: Path
) -> None:
    path.parent.mkdir()
    path.symlink_to("/dev/full")
    log = opened(queue=10)
    for number in range(15):
        log.record(event(number))
    until(lambda: "No space left" in log.fault)
    for number in range(15, 30):
        log.record(event(number))
    path.unlink()
    until(lambda: not log.fault and len(lines(path)) > 10)
    log.close()
    found = lines(path)
    dropped = sum(line["count"] for line in found if line["action"] == "audit.dropped")
    kept = [line["request_id"] for line in found if line["action"] == "exec"]
    assert dropped > 0
    assert len(kept) + dropped == 30
    assert kept == sorted(kept, key=lambda name: int(name[1:]))


@pytest.mark.parametrize("value", ["\ud800", "a\nb", '"}', "\x00", "é" * 5000])
def test_no_value_breaks_or_forges_a_line(opened: Open, path: Path, value: str) -> None:
    log = opened(commands="cut")
    log.record(event(sandbox_id=value, command=value, tenant=value))
    log.record(event(2))
    log.close()
    assert len(lines(path)) == 2
