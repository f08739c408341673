"""What a caller did, for the audit log."""

from __future__ import annotations

import time

from starlette.requests import HTTPConnection

from orchard_env.service.seams import AuditEvent, Tenant
from orchard_env.service.services import Services


def note(
    services: Services, request: HTTPConnection, action: str, sandbox_id: str = "", *, command: str = ""
) -> None:
    """Record that it was done."""
    tenant: Tenant = request.scope["tenant"]
    services.audit.record(
        AuditEvent(
            at=time.time(),
            request_id=request.scope["request_id"],
            tenant=tenant.name,
            key_id=tenant.key_id,
            action=action,
            sandbox_id=sandbox_id,
            client=request.client.host if request.client else "",
            command=command,
        )
    )
