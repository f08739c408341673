"""The way to a real cluster's API server, which can be cut and mended."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..kubernetes.conftest import Kubectl
from .gate import Gate, Streams
from .orchestrators import GENEROUS_S


class Way:
    """The way to the API server, through a gate that can be shut; in a thread of its own."""

    def __init__(self, kubectl: Kubectl) -> None:
        """To the server that kubectl speaks to."""
        self._told = json.loads(kubectl("config", "view", "--raw", "--flatten", "--minify", "-o", "json"))
        self._cluster = self._told["clusters"][0]["cluster"]
        parts = urlsplit(self._cluster["server"])
        self._behind = (parts.hostname or "", parts.port or 443)
        self._loop = asyncio.new_event_loop()
        self._gate = Gate(self._dial)
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.port = self.do(self._gate.open())

    def kubeconfig(self, folder: Path) -> str:
        """Path of one that leads through here."""
        at = {"server": f"https://127.0.0.1:{self.port}", "tls-server-name": self._behind[0]}
        told = {**self._told, "clusters": [{**self._told["clusters"][0], "cluster": {**self._cluster, **at}}]}
        path = folder / "kubeconfig"
        path.write_text(json.dumps(told))
        return str(path)

    def do(self, work: Any) -> Any:
        """In its thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(GENEROUS_S)

    def cut(self) -> None:
        """Shut."""
        self.do(self._gate.cut())

    def mend(self) -> None:
        """Open."""
        self.do(self._gate.mend())

    @contextmanager
    def away(self) -> Iterator[None]:
        """Shut until it is left."""
        self.cut()
        try:
            yield
        finally:
            self.mend()

    def close(self) -> None:
        """End it."""
        self.do(self._gate.close())
        self._loop.call_soon_threadsafe(self._loop.stop)

    async def _dial(self) -> Streams:
        return await asyncio.open_connection(*self._behind)
