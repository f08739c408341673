"""A thread that looks again and again until there is nothing more to see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event as Flag
from threading import Thread


@contextmanager
def looking(look: Callable[[], None], last_look: Callable[[], None], *, every_s: float) -> Iterator[None]:
    """Call `look` every so many seconds from a thread of its own until the block ends, then `last_look`."""
    ending = Flag()

    def loop() -> None:
        while not ending.wait(every_s):
            look()

    thread = Thread(target=loop, name="orchard-display", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()
        last_look()
