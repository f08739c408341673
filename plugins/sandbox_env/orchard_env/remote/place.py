"""One sandbox of a service as the provider's framework handles it."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from orchard_core import (
    AgentClient,
    AgentEndpoint,
    LocalAddress,
    OrchardError,
    SandboxConnectionLost,
    SandboxError,
    SandboxGone,
    SandboxUnavailable,
)
from orchard_env.remote.config import RemoteConfig
from orchard_env.remote.heartbeats import Heartbeats
from orchard_env.remote.service import RemoteService

_PROBE_S = 1.5
_SHUT_S = 60.0
_DELETE_S = 120.0


class RemoteClient(AgentClient):
    """An agent's client whose tokens the service mints: it alone has the root token."""

    def __init__(
        self, service: RemoteService, endpoint: AgentEndpoint, *, through: AgentEndpoint | None = None
    ) -> None:
        super().__init__(endpoint, through=through)
        self._service = service
        self._direct = bool(endpoint.token)
        self._opening = asyncio.Lock()
        self._address: LocalAddress | None = None

    async def mint_token(self, ttl_s: float | None = None) -> AgentEndpoint:
        """See AgentClient; how long it lasts is the service's matter. Where only the service reaches the
        agent, the URL is one of this machine, and good until the client is closed."""
        view = await self._service.endpoint(self.endpoint.sandbox_id)
        return AgentEndpoint(
            url=view.url if self._direct and view.url else await self._local_url(),
            token=view.token,
            sandbox_id=view.sandbox_id,
        )

    async def _local_url(self) -> str:
        async with self._opening:
            if self._address is None:
                self._address = await self.own_address()
        return f"http://{self._address.host}:{self._address.port}"

    async def revoke_token(self, token: str) -> None:
        """See AgentClient."""
        await self._service.withdraw(self.endpoint.sandbox_id, token)


class StraightWay:
    """Whether agents can be reached without the service, as was last seen by any sandbox of a provider: in a
    network that does not let it, only one in a while is tried."""

    def __init__(self) -> None:
        self._shut_until = 0.0

    @property
    def worth_trying(self) -> bool:
        """It was not seen shut lately."""
        return time.monotonic() >= self._shut_until

    def shut(self) -> None:
        """Nobody answered."""
        self._shut_until = time.monotonic() + _SHUT_S


class RemotePlace:
    """Honours StandingPlace and TellingPlace."""

    def __init__(
        self,
        service: RemoteService,
        config: RemoteConfig,
        beats: Heartbeats | None,
        straight: StraightWay,
        *,
        sandbox_id: str,
        workdir: str,
    ) -> None:
        self._service = service
        self._config = config
        self._beats = beats
        self._straight = straight
        self._id = sandbox_id
        self._begun = False
        self._gone: SandboxGone | None = None
        self.workdir = workdir

    @property
    def id(self) -> str:
        """The sandbox's id."""
        return self._id

    async def restart(self) -> AgentClient:
        """See Place. The first time it waits until the service has made the sandbox."""
        if self._begun:
            await self._service.reset(self._id)
        else:
            view = await self._service.ready(self._id, self._config.create_s)
            self.workdir = view.workdir or view.spec.workdir
        return await self._client()

    async def attach(self) -> AgentClient:
        """See StandingPlace."""
        return await self._client()

    async def _client(self) -> AgentClient:
        if self._beats is not None and not self._begun:
            await self._beats.keep(self._id, self._ended)
        self._begun = True
        through = self._service.through(self._id)
        direct = None if self._config.direct == "never" else await self._direct()
        if direct is not None:
            behind = None if self._config.direct == "only" else through
            return RemoteClient(self._service, direct, through=behind)
        if self._config.direct == "only":
            raise SandboxUnavailable(
                f"sandbox {self._id} cannot be reached but through the service, which direct=only forbids",
                hint="use direct=auto, or run the driver where the sandboxes' network is",
            )
        return RemoteClient(self._service, through)

    async def _direct(self) -> AgentEndpoint | None:
        """The agent's own address, if it answers there soon."""
        if self._config.direct == "auto" and not self._straight.worth_trying:
            return None
        with suppress(OrchardError):
            view = await self._service.endpoint(self._id)
            if view.url is None:
                return None
            endpoint = AgentEndpoint(url=view.url, token=view.token, sandbox_id=view.sandbox_id)
            try:
                async with asyncio.timeout(_PROBE_S), AgentClient(endpoint) as probe:
                    await probe.health()
            except (TimeoutError, SandboxConnectionLost, SandboxGone):
                self._straight.shut()
                return None
            return endpoint
        return None

    async def destroy(self) -> None:
        """See Place."""
        if self._beats is not None:
            self._beats.leave(self._id)
        with suppress(SandboxError, TimeoutError, RuntimeError):
            async with asyncio.timeout(_DELETE_S):
                await self._service.delete(self._id)

    def ended(self) -> str | None:
        """See Place."""
        return None if self._gone is None else self._gone.message

    async def verdict(self) -> SandboxGone | None:
        """See TellingPlace."""
        if self._gone is None:
            self._gone = await self._service.why(self._id)
        return self._gone

    def _ended(self, error: SandboxGone) -> None:
        self._gone = error
