"""Calls of clients carried to the agent of their sandbox: same method, query and body, streamed both ways.

The service puts the agent's token and id in, and lets through what passthrough_calls lists. Nothing of a body
is held but what is on its way: the slower side sets the pace.
"""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from orchard_env.service.carry import Carried, carry
from orchard_env.service.faults import RequestInvalid, ServiceFault
from orchard_env.service.http import caller
from orchard_env.service.observe.run_watch import run_watch
from orchard_env.service.passthrough_calls import find_call, methods_at
from orchard_env.service.reach import reach
from orchard_env.service.seams import Work
from orchard_env.service.services import Services
from orchard_env.service.turns import held_briefly

TARGET_MAX = 32 * 1024
"""Bytes of path and query."""
_ODD = re.compile(rb"[^\x21-\x7e]|[#\"<>\\^`{|}]")


class PassThrough:
    """The ASGI application at `/v2/sandboxes/{sandbox_id}/agent/{path}`."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises SandboxUnknown, ScopeMissing, ServiceFault; the front makes answers of them."""
        path = agent_path(scope)
        call = find_call(scope["method"], path)
        if call is None:
            raise _no_such_call(scope["method"], path)
        request = Request(scope)
        entry = await reach(self._services, request, call.scope)
        target = target_of(path, scope["query_string"])
        turn = self._services.admission.enter(caller(request, call.scope), call.work)
        turn = turn if call.work is Work.TRANSFER else held_briefly(turn)
        watch = run_watch(self._services.meters, entry, scope["method"], path)
        carried = Carried(call=call, target=target, saw=None if watch is None else watch.saw)
        async with turn, entry.lent() as client:
            await carry(client, carried, scope, receive, send)


def agent_path(scope: Scope) -> str:
    """What follows `/v2/sandboxes/ID/agent` in the path, as it was sent."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    path = raw.partition(b"?")[0].decode("latin-1").removeprefix(scope.get("root_path", ""))
    parts = path.split("/", 5)
    return f"/{parts[5]}" if len(parts) > 5 else "/"


def target_of(path: str, query: bytes) -> str:
    """Path and query for the agent's ears. Raises RequestInvalid when they are longer than any call's."""
    if len(path) + len(query) > TARGET_MAX:
        raise RequestInvalid(
            f"path and query have more than {TARGET_MAX} bytes", status=414, hint="send less in the address"
        )
    said = _ODD.sub(lambda odd: b"%%%02X" % odd[0][0], query).decode("ascii")
    return f"{path}?{said}" if said else path


def _no_such_call(method: str, path: str) -> ServiceFault:
    allowed = methods_at(path)
    if allowed:
        return ServiceFault(
            f"the agent's {path} does not take {method}", status=405, hint=f"send {' or '.join(allowed)}"
        )
    return ServiceFault(
        f"no call of the agent that passes through the service: {method} {path[:200]}",
        status=404,
        hint="the page rest-v2.md lists them; /v2 has calls of its own for the rest",
    )
