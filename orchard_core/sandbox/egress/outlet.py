"""A sandbox's way out: the driver's proxy, and the tunnel that leads to it from inside."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from orchard_core.errors import SandboxError
from orchard_core.sandbox.agent import AgentClient, Tunnel
from orchard_core.sandbox.egress.policy import EgressPolicy
from orchard_core.sandbox.egress.proxy import EgressProxy
from orchard_core.types.sandbox import Network, NetworkMode

_INSIDE = "127.0.0.1:3128"
_PAUSES_S = (0.1, 0.5, 2.0, 10.0)


def needs_outlet(network: Network) -> bool:
    """Whether a policy lets anything out at all, through the driver."""
    return network.mode in {NetworkMode.OPEN, NetworkMode.ALLOW_LIST}


def outlet_environment(network: Network) -> Mapping[str, str]:
    """What makes programs inside find the proxy; empty where the policy has none."""
    if not needs_outlet(network):
        return MappingProxyType({})
    names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
    local = "localhost,127.0.0.1,::1"
    found = dict.fromkeys(names, f"http://{_INSIDE}") | {"NO_PROXY": local, "no_proxy": local}
    return MappingProxyType(found)


class Outlet:
    """One proxy for one sandbox. Every agent that the sandbox gets is connected anew."""

    def __init__(self, network: Network, directory: Path | None = None) -> None:
        """The proxy's socket lies in `directory`; None: in one of its own, removed by `close`.
        Raises ConfigError for an allow-list that is not understood."""
        self._proxy = EgressProxy(EgressPolicy(network))
        self._directory = directory
        self._own: tempfile.TemporaryDirectory[str] | None = None
        self._keeper: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Begin to listen. Raises OSError."""
        if self._directory is None:
            self._own = tempfile.TemporaryDirectory(prefix="orchard-egress-")
            self._directory = Path(self._own.name)
        await self._proxy.start(self._socket)

    @property
    def _socket(self) -> Path:
        assert self._directory is not None
        return self._directory / "egress.sock"

    async def connect(self, client: AgentClient, *, at_once: bool = True) -> None:
        """Lead the sandbox's proxy port here, and again whenever the connection breaks.

        With `at_once` the first try counts: it raises SandboxError. Without, another driver may hold the port
        still, and gets taken over from when it lets go.
        """
        await self._stop()
        tunnel = await self._tunnel(client) if at_once else None
        self._keeper = asyncio.create_task(self._keep(client, tunnel))

    async def _tunnel(self, client: AgentClient) -> Tunnel:
        return await client.tunnel(str(self._socket), listen=_INSIDE)

    async def _keep(self, client: AgentClient, tunnel: Tunnel | None) -> None:
        tries = 0
        try:
            while True:
                if tunnel is not None:
                    await tunnel.wait_closed()
                    tries = 0
                else:
                    await asyncio.sleep(_PAUSES_S[min(tries, len(_PAUSES_S) - 1)])
                    tries += 1
                try:
                    tunnel = await self._tunnel(client)
                except SandboxError:
                    tunnel = None
        finally:
            if tunnel is not None:
                await tunnel.close()

    async def _stop(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
            self._keeper = None

    async def close(self) -> None:
        """End the proxy with all its connections."""
        try:
            await self._stop()
            await self._proxy.close()
        finally:
            if self._own is not None:
                self._own.cleanup()
