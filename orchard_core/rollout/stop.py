"""How a person stops a run."""

from __future__ import annotations

import asyncio


class Stop:
    """Asked once: nothing new starts, what runs is cancelled and torn down in order, and the journal says
    so, so that a resumed run starts it again. Asked twice: tear-down is cut short too."""

    def __init__(self) -> None:
        self._once = asyncio.Event()
        self._twice = asyncio.Event()

    def request(self) -> None:
        """Ask; to be called in the event loop, such as by `loop.add_signal_handler`."""
        if self._once.is_set():
            self._twice.set()
        self._once.set()

    @property
    def requested(self) -> bool:
        """It was asked at least once."""
        return self._once.is_set()

    async def once(self) -> None:
        """Wait until it is asked."""
        await self._once.wait()

    async def twice(self) -> None:
        """Wait until it is asked again."""
        await self._twice.wait()
