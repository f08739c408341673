"""Sandboxes made for a tenant, at most once for each idempotency key."""

from __future__ import annotations

import hashlib
import re

from fastapi import Request

from orchard_core import SandboxExists, SandboxSpec, Snapshot
from orchard_env.service.creating import create_sandbox
from orchard_env.service.entry import Entry
from orchard_env.service.faults import RequestInvalid, SandboxUnknown
from orchard_env.service.noting import note
from orchard_env.service.seams import Tenant
from orchard_env.service.services import Services
from orchard_env.service.spec_rules import OWN_LABELS, check_wanted
from orchard_env.service.v2.handles import opened
from orchard_env.types.v2 import SandboxRequest

_ASKED = f"{OWN_LABELS}asked"
"""Label: what an idempotency key stands for."""
_KEY = re.compile(r"[\x21-\x7e]{1,128}")


def checked_key(key: str | None) -> str | None:
    """Raises RequestInvalid for what is no idempotency key."""
    if key is not None and not _KEY.fullmatch(key):
        raise RequestInvalid("Idempotency-Key is no such key", hint="1 to 128 visible ASCII characters")
    return key


async def make(
    services: Services, request: Request, tenant: Tenant, wanted: SandboxRequest, key: str | None
) -> Entry:
    """The sandbox asked for, pending. Raises RequestInvalid, ScopeMissing, SnapshotMissing and what
    `create_sandbox` raises."""
    check_wanted(wanted.spec, tenant, services.settings)
    restore = None if wanted.restore is None else opened(services, wanted.restore, tenant)
    if key is None:
        entry = await create_sandbox(services, tenant, wanted.spec, limit_s=wanted.timeout_s, restore=restore)
    else:
        entry = await _once(services, tenant, wanted, restore, key)
    note(services, request, "sandbox.create", entry.id)
    return entry


async def _once(
    services: Services, tenant: Tenant, wanted: SandboxRequest, restore: Snapshot | None, key: str
) -> Entry:
    """The key decides the name, so that whichever replica is asked finds the same sandbox."""
    digest = hashlib.sha256(f"{tenant.name}\0{key}".encode()).hexdigest()
    asked = hashlib.sha256(wanted.model_dump_json().encode()).hexdigest()
    mark = f"{digest[:16]}-{asked[:40]}"
    spec = wanted.spec.model_copy(
        update={
            "name": wanted.spec.name or f"sb-{digest[:32]}",
            "labels": {**wanted.spec.labels, _ASKED: mark},
        }
    )
    try:
        return await create_sandbox(services, tenant, spec, limit_s=wanted.timeout_s, restore=restore)
    except SandboxExists:
        found = await _own(services, tenant, spec)
        if found is not None and found.spec.labels.get(_ASKED) == mark:
            return found
        raise


async def _own(services: Services, tenant: Tenant, spec: SandboxSpec) -> Entry | None:
    try:
        return await services.fleet.get(str(spec.name), tenant=tenant.name)
    except SandboxUnknown:
        return None
