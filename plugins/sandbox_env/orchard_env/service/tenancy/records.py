"""What is kept of tenants and of their keys. Of a key's secret only a hash is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import Field, StringConstraints

from orchard_core import Record
from orchard_env.service.seams import Scope
from orchard_env.service.tenancy.quota import Quota

TenantName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$")]
"""Fits into a label of Kubernetes."""


class TenantRecord(Record):
    """One tenant, as its operator set it."""

    name: TenantName
    """The owner of its sandboxes."""
    weight: float = Field(default=1.0, ge=0.01, le=100)
    """Its share when the service is full: a tenant of weight 2 gets twice the turns of one of weight 1."""
    quota: Quota | None = None
    """What it may have; None: the service's default."""
    revision: int = 0
    """Grows with every change."""


class KeyRecord(Record):
    """One key."""

    id: str = Field(pattern=r"^[0-9a-f]{12}$")
    """Part of the key itself, so that it is found without trying others; no secret."""
    tenant: TenantName
    """Whose it is."""
    scopes: tuple[Scope, ...]
    """What it may do."""
    note: str = ""
    """What it is for, in the operator's words."""
    salt: str
    """Of the hash; hex."""
    digest: str
    """HMAC-SHA256 of the secret under the salt; hex."""
    created: float
    """Seconds since the epoch."""
    expires: float | None = None
    """Refused from then on; None: never for its age."""
    revoked: float | None = None
    """When it was revoked; refused since."""
    replaced_by: str | None = None
    """The key that a rotation made in its place."""
    revision: int = 0
    """Grows with every change: of two copies the one with the larger revision is true."""

    def good(self, now: float) -> bool:
        """Whether it is neither revoked nor expired."""
        return self.revoked is None and (self.expires is None or now < self.expires)


class Access(Record):
    """All tenants and keys: what a key file holds, and a replica's copy of what is shared."""

    version: int = 1
    """Of this format."""
    tenants: tuple[TenantRecord, ...] = ()
    """Those that were set; a tenant with keys alone has the defaults."""
    keys: tuple[KeyRecord, ...] = ()
    """All keys, revoked and expired ones too."""

    def with_key(self, key: KeyRecord) -> Access:
        """With one key added or changed."""
        keys = (*(one for one in self.keys if one.id != key.id), key)
        return self.model_copy(update={"keys": keys})

    def with_tenant(self, tenant: TenantRecord) -> Access:
        """With one tenant added or changed."""
        tenants = (*(one for one in self.tenants if one.name != tenant.name), tenant)
        return self.model_copy(update={"tenants": tenants})


class AccessIndex:
    """All tenants and keys, found by name and by id."""

    def __init__(self, tenants: Iterable[TenantRecord] = (), keys: Iterable[KeyRecord] = ()) -> None:
        self.tenants: Mapping[str, TenantRecord] = {tenant.name: tenant for tenant in tenants}
        self.keys: Mapping[str, KeyRecord] = {key.id: key for key in keys}

    def tenant(self, name: str) -> TenantRecord:
        """As it was set, or with the defaults."""
        return self.tenants.get(name) or TenantRecord(name=name)
