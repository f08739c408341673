"""One WATCH: what happened since, what happens, bookmarks; or the news that its beginning is forgotten."""

from __future__ import annotations

import asyncio
import time

from aiohttp import web

from orchard_env.kubernetes.resources import Manifest
from orchard_env.testing.cluster.answers import Refused
from orchard_env.testing.cluster.selecting import Wanted
from orchard_env.testing.cluster.store import Change, Store, told_line

_KINDS = {"pods": "Pod", "events": "Event"}


class Watch:
    """Bytes to be sent gather here; the sender takes all of them at once."""

    def __init__(self, store: Store, plural: str, wanted: Wanted, bookmark_s: float) -> None:
        self._store = store
        self._plural = plural
        self._wanted = wanted
        self._bookmark_s = bookmark_s
        self._lines: list[bytes] = []
        self._some = asyncio.Event()
        self.ended = False
        self.silent = False

    def begin(self, version: int) -> None:
        """Take in what happened after `version`. Raises Refused (410)."""
        if version < self._store.compacted:
            raise Refused(410, f"too old resource version: {version} ({self._store.compacted})")
        for change in self._store.since(self._plural, version):
            self.take(change)
        self._store.told.append(self.take)

    def take(self, change: Change) -> None:
        """Something happened."""
        if change.plural == self._plural and (line := change.told_to(self._wanted)) is not None:
            self._lines.append(line)
            self._some.set()

    def end(self) -> None:
        """Close the connection in the middle."""
        self.ended = True
        self._some.set()

    async def send(self, response: web.StreamResponse, lasts_s: float) -> None:
        """Until its time is over, or it is ended."""
        ends = time.monotonic() + lasts_s
        try:
            while True:
                try:
                    async with asyncio.timeout(min(self._bookmark_s, max(0.0, ends - time.monotonic()))):
                        await self._some.wait()
                except TimeoutError:
                    self._lines.append(self._bookmark())
                self._some.clear()
                if self.ended or time.monotonic() >= ends:
                    return
                if self.silent:
                    continue
                lines, self._lines = self._lines, []
                await response.write(b"".join(lines))
        finally:
            self._store.told.remove(self.take)

    def _bookmark(self) -> bytes:
        about = {"resourceVersion": str(self._store.version)}
        mark: Manifest = {"kind": _KINDS.get(self._plural, ""), "apiVersion": "v1", "metadata": about}
        return told_line("BOOKMARK", mark)
