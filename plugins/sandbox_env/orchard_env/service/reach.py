"""From a request to the sandbox that it may touch."""

from __future__ import annotations

import re

from starlette.requests import HTTPConnection

from orchard_env.service.entry import Entry
from orchard_env.service.faults import SandboxUnknown
from orchard_env.service.http import caller, owned_by
from orchard_env.service.seams import Scope
from orchard_env.service.services import Services

_ID = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


async def reach(services: Services, request: HTTPConnection, needed: Scope) -> Entry:
    """The sandbox that the path names, if it is the caller's own (an administrator's: anybody's). Raises
    ScopeMissing, SandboxUnknown."""
    tenant = caller(request, needed)
    sandbox_id = str(request.path_params["sandbox_id"])
    if not _ID.fullmatch(sandbox_id):
        raise SandboxUnknown(
            f"no sandbox has the id {sandbox_id[:80]!r}",
            hint="ids are DNS labels: at most 63 of a-z, 0-9 and -",
        )
    return await services.fleet.get(sandbox_id, tenant=owned_by(tenant))
