"""The provider `kubernetes`: sandboxes as pods, spoken to at their own addresses."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib.util import find_spec

from orchard_core import AdoptingAgentProvider, Capabilities, ConfigError, NetworkMode, OrchardError
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.places import PodPlaces
from orchard_env.kubernetes.session import ClusterSession
from orchard_env.kubernetes.warm.told import PoolObserver, PoolStats

_log = logging.getLogger(__name__)


class KubernetesProvider(AdoptingAgentProvider):
    """Honours AdoptingProvider."""

    def __init__(self, config: KubernetesConfig, places: PodPlaces) -> None:
        super().__init__(name="kubernetes", capabilities=capabilities_of(config), places=places)
        self.config = config
        self._pods = places

    async def session(self) -> ClusterSession:
        """What all its sandboxes share; connects when nothing has yet. Raises ConfigError,
        SandboxUnavailable."""
        return await self._pods.session()

    async def reap(self) -> tuple[str, ...]:
        """Sweep the namespace once, and name the sandboxes that were removed. A driver counts as dead only
        after it was seen silent for as long as its lease lasts, so that the first sweep removes nothing.
        Raises SandboxUnavailable."""
        session = await self.session()
        return (await session.reaper.sweep()).sandboxes

    async def keep_pools(self, leads: Callable[[], bool]) -> None:
        """Fill the pools of the configuration from now on, while `leads` says so, which must be quick. One
        process should at a time; two only do double work. Raises ConfigError, SandboxUnavailable."""
        self._pods.leads = leads
        if self._pods.pooling:
            await self._pods.session()

    def pools(self) -> tuple[PoolStats, ...]:
        """The pools as this process sees them; none before it is connected."""
        return self._pods.pools()

    def observe_pools(self, observer: PoolObserver) -> None:
        """Tell somebody of claims and fills; to be called before the first use."""
        self._pods.observer = observer

    async def close(self) -> None:
        """See SandboxProvider. Snapshots that this process saved go, too, unless they are to be kept."""
        await super().close()
        try:
            await self._pods.discard_own()
        except OrchardError as error:
            _log.warning("some snapshots could not be discarded: %s", error.message)


def open_kubernetes(config: KubernetesConfig | None = None) -> KubernetesProvider:
    """The provider; it connects when it is first used. Raises ConfigError without the extra."""
    if find_spec("kubernetes") is None:
        raise ConfigError(
            "the provider kubernetes needs the official client", hint="pip install 'orchard-env[kubernetes]'"
        )
    config = config or KubernetesConfig()
    return KubernetesProvider(config, PodPlaces(config))


def capabilities_of(config: KubernetesConfig) -> Capabilities:
    """What a pod can do. A CPU and a memory limit are enforced by the kernel; one of disk is the kubelet's,
    who evicts the pod some seconds after, which is told as SandboxEvicted and so is not claimed here."""
    return Capabilities(
        images=frozenset({"oci", "host"} if config.host_image else {"oci"}),
        networks=frozenset({NetworkMode.NONE, NetworkMode.ALLOW_LIST, NetworkMode.OPEN}),
        pty=True,
        snapshot=config.snapshots is not None,
        fork=config.snapshots is not None,
        gpu=config.gpus > 0,
        limits={"cpu": "kubelet", "memory": "kubelet"},
    )
