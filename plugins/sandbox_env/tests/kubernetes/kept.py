"""A sandbox that is used again and again, as good as new each time: starting a pod takes a second or two."""

from __future__ import annotations

from orchard_core import Sandbox, SandboxProvider, SandboxSpec

_CLEAN = "rm -rf /workspace/* /workspace/.[!.]* /workspace/..?* /tmp/* /tmp/.[!.]*"


class Kept:
    """One at a time."""

    def __init__(self, provider: SandboxProvider, spec: SandboxSpec) -> None:
        self._provider = provider
        self._spec = spec
        self._sandbox: Sandbox | None = None

    async def take(self) -> Sandbox:
        """With a new agent, and nothing left of what the last one who had it did; or another, if that one
        ended it."""
        if self._sandbox is None or not await self._sandbox.alive():
            await self.close()
            self._sandbox = await self._provider.create(self._spec)
        else:
            await self._sandbox.reset_processes()
            await self._sandbox.exec(_CLEAN, cwd="/")
        return self._sandbox

    async def close(self) -> None:
        """End it."""
        if self._sandbox is not None:
            await self._sandbox.close()
