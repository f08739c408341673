"""Requests read within bounds, and answers written."""

from __future__ import annotations

import asyncio
import math
from typing import TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import Response

from orchard_env.service.bodies import HeldBody
from orchard_env.service.faults import BodyTooLarge, RequestInvalid, RequestTooSlow, ScopeMissing
from orchard_env.service.problems import encoded
from orchard_env.service.seams import Scope, Tenant

BODY_S = 120.0
"""A body that is not whole after so many seconds is given up."""


class Body(BaseModel):
    """What a request carries. Unknown fields are passed over: programs of later versions send them."""

    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)


_Body = TypeVar("_Body", bound=Body)


async def read_body(request: Request, limit: int, within_s: float | None = None) -> bytes:
    """The whole body, within the service's `body_s` unless told otherwise. Raises BodyTooLarge beyond `limit`
    bytes, RequestTooSlow, ServiceOverloaded when all requests together hold too much."""
    held: HeldBody | None = request.scope.get("held_body")
    tenant: Tenant | None = request.scope.get("tenant")
    within_s = within_s or request.scope.get("body_s", BODY_S)
    told = request.headers.get("content-length", "")
    if told.isdigit() and int(told) > limit:
        raise _too_large(limit)
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(within_s):
            async for piece in request.stream():
                size += len(piece)
                if size > limit:
                    raise _too_large(limit)
                if held is not None:
                    held.more(tenant.name if tenant else "", len(piece))
                pieces.append(piece)
    except TimeoutError:
        raise RequestTooSlow(
            f"the body was not whole after {within_s:g} s", hint="send it at once, or stream it over /v2"
        ) from None
    except ClientDisconnect:
        raise gone_before_its_end() from None
    return b"".join(pieces)


def gone_before_its_end() -> RequestInvalid:
    """A client left in the midst of its body. Only the log hears it, and it is no failure of ours."""
    return RequestInvalid("the client left before the request's body was whole", status=400)


def _too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(
        f"the body is over {limit >> 20} MiB", hint="stream large files over /v2, which has no such bound"
    )


async def read_json(request: Request, kind: type[_Body], limit: int) -> _Body:
    """The body as one of our models. Raises RequestInvalid besides what `read_body` raises."""
    raw = await read_body(request, limit)
    try:
        value = orjson.loads(raw)
    except ValueError as error:
        raise RequestInvalid(
            f"the body is not JSON: {error}", hint="send a JSON object and its content type", status=400
        ) from None
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise RequestInvalid(_wrong(error), hint=f"fields: {', '.join(kind.model_fields)}") from None


def _wrong(error: ValidationError) -> str:
    """The first three faults, each with its place; never the value, which may be a secret or huge."""
    told = [
        f"{'.'.join(map(str, fault['loc'])) or 'the body'}: {fault['msg']}"
        for fault in error.errors(include_url=False, include_input=False, include_context=False)[:3]
    ]
    return "; ".join(told)


def seconds(request: HTTPConnection, name: str, default: float, most: float) -> float:
    """A number of seconds from the query, at most `most`. Raises RequestInvalid."""
    text = request.query_params.get(name)
    if text is None or text == "":
        return min(default, most)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value >= 0:
        raise RequestInvalid(f"{name}: not a number of seconds", hint=f"write ?{name}=30")
    return min(value, most)


def caller(request: HTTPConnection, scope: Scope) -> Tenant:
    """Who calls. Raises ScopeMissing when the key is not for this."""
    tenant: Tenant = request.scope["tenant"]
    if scope not in tenant.scopes and not tenant.is_admin:
        raise ScopeMissing(
            f"this key may not do that: it lacks the scope {scope.value}",
            hint="ask the operator for a key that has it",
        )
    return tenant


def owned_by(tenant: Tenant) -> str | None:
    """Whose sandboxes this caller sees; None: everybody's."""
    return None if tenant.is_admin else tenant.name


def answer(value: object, status: int = 200) -> Response:
    """A JSON answer."""
    return Response(encoded(value), status, media_type="application/json")
