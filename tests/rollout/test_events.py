"""Observers are told everything in order, and none can harm the run."""

from __future__ import annotations

import threading
import time

from orchard_core.rollout.events import EventBus
from orchard_core.types.events import Event, RunFinished


def event(number: int) -> RunFinished:
    return RunFinished(run="r", finished=number, cancelled=False, at=0.0)


def numbers(events: list[Event]) -> list[int]:
    return [item.finished for item in events if isinstance(item, RunFinished)]


def test_every_observer_sees_every_event_in_order() -> None:
    first: list[Event] = []
    second: list[Event] = []
    bus = EventBus([("first", first.append), ("second", second.append)])
    for number in range(500):
        bus.emit(event(number))
    bus.close()
    assert numbers(first) == numbers(second) == list(range(500))
    assert set(bus.dropped.values()) == {0}


def test_a_slow_observer_loses_events_which_is_counted_and_delays_nobody() -> None:
    gate = threading.Event()
    slow: list[Event] = []
    fast: list[Event] = []

    def block(item: Event) -> None:
        gate.wait()
        slow.append(item)

    bus = EventBus([("slow", block), ("fast", fast.append)], size=10)
    for number in range(100):
        bus.emit(event(number))
        while len(fast) <= number:
            time.sleep(0.0005)
    assert bus.dropped["slow"] >= 89
    gate.set()
    bus.close()
    assert numbers(slow) == list(range(len(slow)))
    assert len(slow) + bus.dropped["slow"] == 100
    assert bus.dropped["fast"] == 0


def test_an_observer_that_raises_is_counted_and_goes_on() -> None:
    seen: list[Event] = []

    def odd(item: Event) -> None:
        seen.append(item)
        if len(seen) % 2:
            raise ValueError("no")

    bus = EventBus([("odd", odd)])
    for number in range(10):
        bus.emit(event(number))
    bus.close()
    assert len(seen) == 10
    assert bus.failed["odd"] == 5


def test_a_hung_observer_does_not_keep_a_run_from_ending() -> None:
    gate = threading.Event()

    def hang(_: Event) -> None:
        gate.wait()

    bus = EventBus([("hung", hang)])
    for number in range(5):
        bus.emit(event(number))
    bus.close(wait_s=0.1)
    assert bus.dropped["hung"] >= 4
    gate.set()
