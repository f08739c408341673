"""Serving one request of a session, in the dialect it came in."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial

from orchard_core.errors import ModelError, SessionClosed
from orchard_core.gateway import faults, http
from orchard_core.gateway.call import LEFT, Call
from orchard_core.gateway.dialect import DialectCodec
from orchard_core.gateway.dialects import Spoken
from orchard_core.gateway.faults import Fault
from orchard_core.gateway.headers import Headers
from orchard_core.gateway.http import Client, Send
from orchard_core.gateway.json_text import JsonFault
from orchard_core.gateway.messages.counting import counted
from orchard_core.gateway.session import Session


async def refuse(send: Send, codec: DialectCodec, fault: Fault, *, close: bool = False) -> None:
    """An error answer in the codec's dialect."""
    await http.send_fault(send, fault.status, codec.fault(fault), close=close)


async def serve(
    spoken: Spoken, session: Session, body: bytes, headers: Headers, client: Client, send: Send
) -> None:
    """Answer a request whose body has come. Raises ClientGone."""
    codec = spoken.codec(session.dialects)
    if codec is None:
        await refuse(send, spoken.native, _no_way(session, spoken))
        return
    try:
        request = codec.request(body, session.conversation)
    except (JsonFault, RecursionError) as fault:
        await refuse(send, codec, _unread(fault))
        return
    if request.model != session.endpoint.model:
        message = f"this key serves the model {session.endpoint.model!r}, not {request.model[:200]!r}"
        await refuse(send, codec, faults.invalid(message, status=404, code="model_not_found"))
        return
    request.headers = headers.dialect
    try:
        call = session.begin(request, codec)
    except ModelError as error:
        await refuse(send, codec, faults.of(error))
        return
    client.watch(partial(call.end, LEFT))
    try:
        await (_stream(call, send) if request.stream else _whole(call, send))
    finally:
        client.watch(None)


async def count(
    native: DialectCodec, session: Session, body: bytes, headers: Headers, client: Client, send: Send
) -> None:
    """Answer how many tokens a request has."""
    try:
        answer = await counted(session, body, headers.dialect)
    except (JsonFault, RecursionError) as fault:
        await refuse(send, native, _unread(fault))
    except ModelError as error:
        await refuse(send, native, faults.of(error))
    else:
        await http.send_json(send, 200, answer)


def _unread(fault: JsonFault | RecursionError) -> Fault:
    words = str(fault) if isinstance(fault, JsonFault) else "the JSON is nested too deeply"
    return faults.invalid(f"the request cannot be read: {words}")


def _no_way(session: Session, spoken: Spoken) -> Fault:
    model, speaks = session.endpoint.model, ", ".join(sorted(session.dialects))
    message = (
        f"the model {model!r} speaks {speaks}; a request in {spoken.native.dialect} cannot be put into that"
        " (use a harness that speaks it, or another of the model's servers)"
    )
    return faults.invalid(message, code="dialect_unsupported")


async def _whole(call: Call, send: Send) -> None:
    try:
        body = await call.whole()
    except ModelError as error:
        await refuse(send, call.codec, faults.of(error))
    except asyncio.CancelledError:
        await refuse(send, call.codec, faults.of(_ended(call)))
    else:
        await http.send_json(send, 200, body)


async def _stream(call: Call, send: Send) -> None:
    started = False
    failure: ModelError | None = None
    try:
        async with aclosing(call.pieces()) as pieces:
            async for piece in pieces:
                if not started:
                    await http.start_stream(send)
                    started = True
                await http.send_events(send, piece)
    except ModelError as error:
        failure = error
    except asyncio.CancelledError:
        failure = _ended(call)
    await _finish_stream(call, send, started, failure)


async def _finish_stream(call: Call, send: Send, started: bool, failure: ModelError | None) -> None:
    if failure is not None and not started:
        await refuse(send, call.codec, faults.of(failure))
        return
    if not started:
        await http.start_stream(send)
    await http.send_events(send, _last(call, failure), more=False)


def _last(call: Call, failure: ModelError | None) -> bytes:
    """The events that end a stream, whichever way."""
    try:
        if failure is None:
            return call.ending()
    except ModelError as error:
        failure = error
    return call.failing(faults.of(failure))


def _ended(call: Call) -> SessionClosed:
    """The error of a call that was ended on purpose; any other cancellation goes on."""
    task = asyncio.current_task()
    if not call.ended_by or task is None:
        raise asyncio.CancelledError
    task.uncancel()
    return SessionClosed(call.ended_by)
