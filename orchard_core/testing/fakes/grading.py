"""Grading on any provider."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from orchard_core.errors import ConfigError
from orchard_core.sandbox.contract import Sandbox, SandboxProvider
from orchard_core.types.model import ModelEndpoint
from orchard_core.types.sandbox import SandboxSpec


class FakeGrading:
    """Honours `orchard_core.Grading`; it counts the sandboxes that a reward left open."""

    def __init__(
        self,
        provider: SandboxProvider,
        *,
        own: Sandbox | None = None,
        deadline_s: float = 60.0,
        judges: Mapping[str, ModelEndpoint] | None = None,
    ) -> None:
        self._provider = provider
        self._own = own
        self._deadline_s = deadline_s
        self._judges = judges or {}
        self.specs: list[SandboxSpec] = []
        """The spec of every fresh sandbox asked for."""
        self.open = 0
        """Fresh sandboxes entered and not left."""

    @property
    def own(self) -> Sandbox | None:
        """See Grading."""
        return self._own

    @property
    def deadline_s(self) -> float:
        """See Grading."""
        return self._deadline_s

    def fresh(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Sandbox]:
        """See Grading."""
        return self._fresh(spec)

    def judge(self, name: str) -> AbstractAsyncContextManager[ModelEndpoint]:
        """See Grading."""
        return self._judge(name)

    @asynccontextmanager
    async def _fresh(self, spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        self.specs.append(spec)
        async with await self._provider.create(spec) as sandbox:
            self.open += 1
            try:
                yield sandbox
            finally:
                self.open -= 1

    @asynccontextmanager
    async def _judge(self, name: str) -> AsyncIterator[ModelEndpoint]:
        if name not in self._judges:
            raise ConfigError(f"there is no judge {name!r}", hint="pass it to FakeGrading(judges=...)")
        yield self._judges[name]
