"""Where the events of a run meet a display, whatever thread they come from."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from orchard_core.cli.display.progress import Progress
from orchard_core.cli.display.shown import Shown, View, wants_live
from orchard_core.types.events import Event


class Watcher:
    """Lets a view show what happens."""

    def __init__(self, view: View[Progress], *, now: Callable[[], float] = time.time) -> None:
        self._shown = Shown(view, Progress(), now=now)

    def __call__(self, event: Event) -> None:
        """Take in one event."""
        with self._shown.change() as progress:
            progress.handle(event)

    def showing(self) -> AbstractContextManager[None]:
        """Show until the block ends."""
        return self._shown.showing()


def make_watcher(title: str, *, plain: bool) -> Watcher:
    """The display that fits this terminal."""
    if wants_live(plain=plain):
        from orchard_core.cli.display.live import live_view

        return Watcher(live_view(title))
    from orchard_core.cli.display.plain import PlainView

    return Watcher(PlainView(title))
