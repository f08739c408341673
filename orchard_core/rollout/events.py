"""Telling observers what happened, without ever waiting for one."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from orchard_core.types.events import Event

Observer = Callable[[Event], None]
_LOG = logging.getLogger("orchard.events")
QUEUE = 4096
"""Events that may wait for one observer; further ones are dropped and counted."""


class EventBus:
    """One bounded queue and one thread an observer: a slow, broken or hung one harms nobody else."""

    def __init__(self, observers: Sequence[tuple[str, Observer]] = (), *, size: int = QUEUE) -> None:
        self._lanes = [_Lane(name, observer, size) for name, observer in observers]

    def emit(self, event: Event) -> None:
        """Hand an event to every observer; never blocks, never raises."""
        for lane in self._lanes:
            lane.put(event)

    @property
    def dropped(self) -> Mapping[str, int]:
        """Events that each observer was too slow for."""
        return {lane.name: lane.dropped for lane in self._lanes}

    @property
    def failed(self) -> Mapping[str, int]:
        """Events at which each observer raised."""
        return {lane.name: lane.failed for lane in self._lanes}

    def close(self, *, wait_s: float = 5.0) -> None:
        """Let observers see what is queued; one that is not through by then is left behind."""
        for lane in self._lanes:
            lane.finish()
        end = time.monotonic() + wait_s
        for lane in self._lanes:
            lane.join(max(0.0, end - time.monotonic()))


class _Lane:
    def __init__(self, name: str, observer: Observer, size: int) -> None:
        self.name = name
        self.dropped = 0
        self.failed = 0
        self._observer = observer
        self._queue: queue.Queue[Event] = queue.Queue(maxsize=size)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"orchard-events-{name}", daemon=True)
        self._thread.start()

    def put(self, event: Event) -> None:
        try:
            self._queue.put_nowait(event)
        except queue.Full:
            self.dropped += 1

    def finish(self) -> None:
        self._closing.set()

    def join(self, timeout: float) -> None:
        self._thread.join(timeout)
        if self._thread.is_alive():
            self.dropped += self._queue.qsize()
        if self.dropped or self.failed:
            _LOG.warning("observer %s: %d events dropped, %d failed", self.name, self.dropped, self.failed)

    def _work(self) -> None:
        while True:
            try:
                event = self._queue.get(timeout=0.05)
            except queue.Empty:
                if self._closing.is_set():
                    return
                continue
            try:
                self._observer(event)
            except Exception:  # noqa: BLE001 - border: an observer is foreign code and must not harm the run
                self.failed += 1
                if self.failed == 1:
                    _LOG.exception("observer %s failed; its further failures are only counted", self.name)
