"""Commands that pass through the service, measured by how their agent says that they ended.

It is a sandbox's word: what is no sane number is not believed, and no command took longer than it was let.
"""

from __future__ import annotations

import re
import time

import orjson

from orchard_env.service.entry import Entry
from orchard_env.service.passthrough_calls import RUN_ID
from orchard_env.service.seams import Meters

_BEGIN = "/v1/exec"
_STATUS = re.compile(f"/v1/exec/{RUN_ID}")
_HEAD_MAX = 16 << 10
_LONGEST_S = 30 * 86400.0


class RunWatch:
    """Looks at the beginning of one answer. It raises nothing and changes nothing."""

    def __init__(self, meters: Meters, entry: Entry, *, begins: bool) -> None:
        """`begins`: the call started the command, so that its own time says what the rest took."""
        self._meters = meters
        self._entry = entry
        self._began = time.monotonic() if begins else None

    def saw(self, piece: bytes) -> None:
        """The first piece of the answer's body, which holds all of the status, or is passed over."""
        length = int.from_bytes(piece[:4], "big")
        if not 2 <= length <= min(_HEAD_MAX, len(piece) - 4):
            return
        try:
            status = orjson.loads(piece[4 : 4 + length])
            if status["state"] == "exited":
                self._ended(status)
        except (ValueError, TypeError, KeyError, AttributeError):
            return

    def _ended(self, status: dict[str, object]) -> None:
        duration = _seconds(status["duration"])
        over = None
        if self._began is not None and status.get("started") is not None:
            waited = max(0.0, _moment(status["started"]) - _moment(status["created"]))
            over = time.monotonic() - self._began - duration - waited
        outcome = "timed_out" if status.get("timed_out") else "failed" if status["exit_code"] else "succeeded"
        self._meters.executed(
            self._entry.tenant,
            outcome,
            duration,
            over if over is not None and over >= 0 else None,
            run=f"{self._entry.id}.{str(status['id'])[:128]}",
        )


def _seconds(told: object) -> float:
    if not isinstance(told, int | float) or not 0 <= told <= _LONGEST_S:
        raise ValueError("no time that a command can have taken")
    return float(told)


def _moment(told: object) -> float:
    if not isinstance(told, int | float):
        raise ValueError("no moment")
    return float(told)


def run_watch(meters: Meters, entry: Entry, method: str, path: str) -> RunWatch | None:
    """For a call whose answer tells how a command stands; None for any other."""
    begins = (method, path) == ("POST", _BEGIN)
    if not begins and (method != "GET" or not _STATUS.fullmatch(path)):
        return None
    return RunWatch(meters, entry, begins=begins)
