"""The secret of each agent, derived: who knows the namespace's seed knows all of them, and stores none."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

from orchard_core import ConfigError, SandboxUnavailable
from orchard_env.kubernetes.api import ClusterApi
from orchard_env.kubernetes.faults import ObjectExists
from orchard_env.kubernetes.labels import MANAGED_BY, MANAGER
from orchard_env.kubernetes.resources import SECRETS, Manifest

SEED_KEY = "seed"
_SEED_BYTES = 48
_SEED_MIN = 32
_PURPOSE = b"orchard-agent-token"


def derive_token(seed: bytes, sandbox_id: str, uid: str, generation: int = 0) -> str:
    """The root token of one agent: `uid` is its pod's, `generation` how often it was started anew.

    hex(HMAC-SHA256(seed, purpose NUL id NUL uid [NUL generation])); the agent's `inject` makes generation 0.
    """
    parts = [_PURPOSE, sandbox_id.encode(), uid.encode()]
    if generation:
        parts.append(str(generation).encode())
    return hmac.new(seed, b"\0".join(parts), hashlib.sha256).hexdigest()


async def ensure_seed(api: ClusterApi, name: str) -> bytes:
    """The namespace's seed; made by whoever comes first. Raises ConfigError for a Secret that holds none,
    SandboxUnavailable."""
    found = await api.get(SECRETS, name)
    if found is None:
        seed = base64.b64encode(secrets.token_bytes(_SEED_BYTES))
        try:
            found = await api.create(SECRETS, _manifest(name, seed))
        except ObjectExists:
            found = await api.get(SECRETS, name)
    if found is None:
        raise SandboxUnavailable(
            f"the Secret {api.namespace}/{name} went away while it was being read",
            hint="find out who deletes it; every agent's token comes from it",
        )
    try:
        seed = base64.b64decode(found["data"][SEED_KEY])
    except (KeyError, ValueError, TypeError):
        seed = b""
    if len(seed) < _SEED_MIN:
        raise ConfigError(
            f"the Secret {api.namespace}/{name} holds no seed of {_SEED_MIN} bytes under {SEED_KEY!r}",
            hint="delete it, and one is made; or name another with `seed_secret`",
        )
    return seed


def _manifest(name: str, seed: bytes) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "labels": {MANAGED_BY: MANAGER}},
        "type": "Opaque",
        "immutable": True,
        "data": {SEED_KEY: base64.b64encode(seed).decode()},
    }
