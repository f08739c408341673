"""An answer that is the agent's own, streamed both ways."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from orchard_env.service.carry import Carried, carry
from orchard_env.service.entry import Entry
from orchard_env.service.http import caller
from orchard_env.service.passthrough_calls import AgentCall
from orchard_env.service.services import Services


class CarriedResponse(Response):
    """Takes the request's body to the agent and brings its answer, in the turn of the caller."""

    def __init__(self, services: Services, entry: Entry, call: AgentCall, target: str) -> None:
        super().__init__()
        self._services = services
        self._entry = entry
        self._call = call
        self._target = target

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See Response. Raises what `carry` raises."""
        turn = self._services.admission.enter(caller(Request(scope), self._call.scope), self._call.work)
        async with turn, self._entry.lent() as client:
            carried = Carried(call=self._call, target=self._target, own_words=True)
            await carry(client, carried, scope, receive, send)
