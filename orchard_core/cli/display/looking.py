"""A thread that looks again and again until there is nothing more to see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event as Flag
from threading import Thread

_FIRST_S = 0.5
"""Pause before the first look, seconds, for who waits whether anything happens at all."""


@contextmanager
def looking(look: Callable[[], None], last_look: Callable[[], None], *, every_s: float) -> Iterator[None]:
    """Call `look` every so many seconds, sooner at the beginning, from a thread of its own until the block
    ends; then `last_look`."""
    ending = Flag()

    def loop() -> None:
        pause = min(_FIRST_S, every_s)
        while not ending.wait(pause):
            look()
            pause = min(2 * pause, every_s)

    thread = Thread(target=loop, name="orchard-display", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()
        last_look()
