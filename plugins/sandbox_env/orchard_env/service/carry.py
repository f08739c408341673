"""One call carried to an agent, and its answer back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass

from starlette.types import Receive, Scope, Send

from orchard_core import AgentClient, FileError, NotAnAgent, SandboxConnectionLost
from orchard_env.service.agent_words import agent_refusal
from orchard_env.service.outgoing import Outgoing
from orchard_env.service.passthrough_body import ClientLeft, Incoming
from orchard_env.service.passthrough_calls import AgentCall

_PAUSES_S = (0.02, 0.1, 0.4)
_UP = {b"content-type": "Content-Type", b"range": "Range"}
_REFUSAL_MAX = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What is to be carried."""

    call: AgentCall
    """The kind of call."""
    target: str
    """Path and query for the agent."""
    own_words: bool = False
    """Refusals of the agent become the service's problems; otherwise they pass as they are."""
    saw: Callable[[bytes], None] | None = None
    """Shown the first piece of a good answer's body."""


async def carry(client: AgentClient, carried: Carried, scope: Scope, receive: Receive, send: Send) -> None:
    """The whole exchange; it ends when the client leaves. Raises SandboxConnectionLost, SandboxGone,
    RequestTooSlow, RequestInvalid, and what the agent refuses when it is to be told in our own words."""
    incoming = Incoming(scope, receive)
    work = asyncio.create_task(_carried(client, carried, scope, incoming, Outgoing(send)))
    leaving = asyncio.create_task(incoming.left())
    try:
        await asyncio.wait((work, leaving), return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            with suppress(ClientLeft):
                work.result()
    finally:
        work.cancel()
        leaving.cancel()
        await asyncio.gather(work, leaving, return_exceptions=True)


async def _carried(
    client: AgentClient, carried: Carried, scope: Scope, incoming: Incoming, outgoing: Outgoing
) -> None:
    headers = {_UP[name]: value.decode("latin-1") for name, value in scope["headers"] if name in _UP}
    if incoming.small:
        await _repeated(client, carried, headers, await incoming.read(), outgoing)
        return
    if incoming.size is not None:
        headers["Content-Length"] = str(incoming.size)
    async with aclosing(incoming.pieces()) as pieces:
        await _once(client, carried, headers, pieces, outgoing)


async def _repeated(
    client: AgentClient, carried: Carried, headers: dict[str, str], body: bytes, outgoing: Outgoing
) -> None:
    """A kept connection may turn out to be dead; what does no harm twice is then sent on another."""
    for pause_s in (*_PAUSES_S, None):
        try:
            await _once(client, carried, headers, body, outgoing)
        except SandboxConnectionLost as error:
            repeats = carried.call.repeat and not isinstance(error, NotAnAgent)
            if pause_s is None or not repeats or outgoing.begun:
                raise
            await asyncio.sleep(pause_s)
        else:
            return


async def _refusal(read: Awaitable[bytes]) -> bytes:
    try:
        return await read
    except FileError as error:
        raise NotAnAgent(f"no agent refuses a call in so many words: {error.message}") from error


async def _once(
    client: AgentClient,
    carried: Carried,
    headers: dict[str, str],
    body: bytes | AsyncIterator[bytes],
    outgoing: Outgoing,
) -> None:
    call = carried.call
    async with client.link.carry(
        call.method, carried.target, body, headers=headers, patience=call.patience_s
    ) as answer:
        if carried.own_words and answer.status >= 400:
            raise agent_refusal(answer.status, await _refusal(answer.read(_REFUSAL_MAX)))
        await outgoing.start(answer.status, answer.headers)
        saw = carried.saw if answer.status < 300 else None
        async for piece in answer.pieces():
            if saw is not None:
                saw(piece)
                saw = None
            await outgoing.body(piece)
        await outgoing.end()
