"""Snapshots as a tenant holds them: the provider's own name, signed, so that none can be forged or
borrowed."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from orchard_core import Snapshot, SnapshotMissing
from orchard_env.service.seams import Tenant
from orchard_env.service.services import Services

_MAC = 16


def handed(services: Services, snapshot: Snapshot, tenant: str) -> Snapshot:
    """A snapshot for its owner's hands."""
    own = snapshot.id.encode()
    said = base64.urlsafe_b64encode(_mac(services, own, tenant) + own).decode().rstrip("=")
    return snapshot.model_copy(update={"id": said})


def opened(services: Services, snapshot: Snapshot, tenant: Tenant) -> Snapshot:
    """The provider's own. Raises SnapshotMissing for one that is not the caller's."""
    try:
        raw = base64.urlsafe_b64decode(snapshot.id + "=" * (-len(snapshot.id) % 4))
        own = raw[_MAC:].decode()
    except (binascii.Error, ValueError):
        raise _missing(snapshot.id) from None
    if not hmac.compare_digest(raw[:_MAC], _mac(services, raw[_MAC:], tenant.name)):
        raise _missing(snapshot.id)
    provider = services.fleet.provider.name
    return Snapshot(id=own, provider=provider, size=snapshot.size)


def _mac(services: Services, own: bytes, tenant: str) -> bytes:
    said = b"orchard-snapshot\0" + tenant.encode() + b"\0" + own
    return hmac.new(services.secret, said, hashlib.sha256).digest()[:_MAC]


def _missing(said: str) -> SnapshotMissing:
    return SnapshotMissing(
        f"there is no snapshot {said[:80]!r}", hint="it was discarded, or is another tenant's, or of old"
    )
