"""The parts that make a service one that a team shares, begun and ended together."""

from __future__ import annotations

import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from orchard_core import ConfigError, SandboxProvider
from orchard_env.service.admission.fair import FairAdmission
from orchard_env.service.audit.log import AuditLog
from orchard_env.service.audit.settings import AuditSettings
from orchard_env.service.defaults import NoAudit
from orchard_env.service.leader.contract import Alone, Leadership
from orchard_env.service.leader.election import Election
from orchard_env.service.leader.lease_grip import LeaseGrip
from orchard_env.service.presence import Presence
from orchard_env.service.seams import Audit
from orchard_env.service.shared_heartbeats import SharedHeartbeats
from orchard_env.service.state.contract import SharedState
from orchard_env.service.state.open import open_state
from orchard_env.service.state.values import StateUnavailable
from orchard_env.service.team_settings import TeamSettings
from orchard_env.service.tenancy.books import NOTE_FIELD
from orchard_env.service.tenancy.key_file import FileKeys
from orchard_env.service.tenancy.keyed import KeyedTenancy, Keys
from orchard_env.service.tenancy.shared_keys import SharedKeys

_REAPER = "orchard-env-reaper"
_SECRETS = "service"


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """What the service is put together from when tenants have keys."""

    state: SharedState
    """What replicas share."""
    tenancy: KeyedTenancy
    """Tenants, keys, quotas."""
    admission: FairAdmission
    """Queues."""
    audit: Audit
    """Who did what."""
    leadership: Leadership
    """Whether this replica destroys what fell silent."""
    heartbeats: SharedHeartbeats
    """Which sandboxes fell silent."""
    secret: bytes
    """Signs what clients hold; the same in all replicas."""
    keys: Keys
    """Where tenants and keys are kept."""

    def conditions(self) -> list[str]:
        """What does not work as it should, in words."""
        health = self.state.health()
        away = f"the shared Redis is away ({health.detail}): each replica goes on by itself"
        fault = self.audit.fault if isinstance(self.audit, AuditLog) else ""
        return [text for text in (away if health.detail else "", self.keys.fault, fault) if text]


@asynccontextmanager
async def team(settings: TeamSettings, provider: SandboxProvider) -> AsyncIterator[Team]:
    """All of it, until it is left. Raises ConfigError for what cannot be as it is set; a Redis that is away
    keeps nothing from starting."""
    async with AsyncExitStack() as stack:
        audit = _audit(settings.audit, stack)
        state = open_state(settings.redis)
        stack.push_async_callback(state.close)
        keys = await _keys(settings, state, stack)
        tenancy = KeyedTenancy(keys, state, default=settings.quota, unstated=settings.unstated)
        leadership = await _leadership(settings, state, provider, stack)
        yield Team(
            state=state,
            tenancy=tenancy,
            admission=FairAdmission(tenancy, state, settings.admission),
            audit=audit,
            leadership=leadership,
            heartbeats=SharedHeartbeats(state.beats, leadership),
            secret=await _secret(state),
            keys=keys,
        )


def _audit(settings: AuditSettings | None, stack: AsyncExitStack) -> Audit:
    if settings is None:
        return NoAudit()
    try:
        log = AuditLog(settings)
    except OSError as error:
        raise ConfigError(
            f"the audit log {settings.path} cannot be written: {error.strerror}",
            hint="choose a path that this user may write to",
        ) from error
    stack.callback(log.close)
    return log


async def _keys(settings: TeamSettings, state: SharedState, stack: AsyncExitStack) -> Keys:
    if settings.keys is not None:
        presence = Presence(state, _replica(settings), dict, lasts_s=settings.replica_s)
        keys: FileKeys | SharedKeys = FileKeys(settings.keys)
    else:

        async def loaded(_: int) -> None:
            await presence.beat()

        shared = keys = SharedKeys(state, loaded=loaded)
        presence = Presence(
            state, _replica(settings), lambda: {NOTE_FIELD: shared.version}, lasts_s=settings.replica_s
        )
    await keys.start()
    stack.push_async_callback(keys.close)
    await presence.start()
    stack.push_async_callback(presence.close)
    return keys


def _replica(settings: TeamSettings) -> str:
    return settings.replica or f"{socket.gethostname()}-{secrets.token_hex(4)}"


async def _leadership(
    settings: TeamSettings, state: SharedState, provider: SandboxProvider, stack: AsyncExitStack
) -> Leadership:
    how = settings.leader
    if how == "auto":
        how = "kubernetes" if provider.name == "kubernetes" else "redis" if settings.redis else "alone"
    leadership: Leadership
    if how == "alone":
        leadership = Alone()
    elif how == "redis":
        if settings.redis is None:
            raise ConfigError("leader: redis needs a Redis", hint="set redis, or leader: alone")
        leadership = Election(LeaseGrip(state.leases, _REAPER), _replica(settings), ttl_s=settings.leader_s)
    else:
        leadership = await _by_the_cluster(settings, provider, stack)
    await leadership.start()
    stack.push_async_callback(leadership.stop)
    return leadership


async def _by_the_cluster(
    settings: TeamSettings, provider: SandboxProvider, stack: AsyncExitStack
) -> Leadership:
    """By a Lease beside the sandboxes, where the provider has rights anyway."""
    from orchard_env.kubernetes.api import ClusterApi
    from orchard_env.kubernetes.config import KubernetesConfig
    from orchard_env.kubernetes.grip import KubernetesGrip
    from orchard_env.kubernetes.provider import KubernetesProvider

    config = provider.config if isinstance(provider, KubernetesProvider) else KubernetesConfig()
    api = await ClusterApi.open(
        kubeconfig=config.kubeconfig, context=config.context, namespace=config.namespace
    )
    stack.push_async_callback(api.close)
    return Election(KubernetesGrip(api, _REAPER), _replica(settings), ttl_s=settings.leader_s)


async def _secret(state: SharedState) -> bytes:
    """The one that the replicas share; one of this replica's own while they cannot."""
    own = secrets.token_bytes(32)
    try:
        lease = await state.leases.take("service-secret", own.hex()[:8], 10.0)
        found = (await state.tables.read(_SECRETS)).rows.get("secret")
        if found is None and lease is not None:
            await state.tables.put(_SECRETS, {"secret": own})
            found = own
        if lease is not None:
            await state.leases.drop(lease)
    except StateUnavailable:
        return own
    return found or own
