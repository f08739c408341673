"""Routes of `/v2` whose body is JSON: read within bounds, and refused in the service's words."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from orchard_env.service.faults import RequestInvalid
from orchard_env.service.http import read_body

BODY_MAX = 48 << 20
"""Bytes of a JSON body; files of any size travel as raw bytes."""
_TOLD = 3
_JSON = "application/json"


class JsonRoute(APIRoute):
    """FastAPI reads a body of any size, for as long as it takes, and takes NaN for a number. This does
    not."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """See APIRoute."""
        handler = super().get_route_handler()
        reads = self.body_field is not None

        async def bounded(request: Request) -> Response:
            if reads:
                await _read(request)
            try:
                return await handler(request)
            except RequestValidationError as error:
                raise RequestInvalid(
                    words(error), hint="GET /openapi.json tells what this call takes"
                ) from None

        return bounded


async def _read(request: Request) -> None:
    """Read and parse the body where FastAPI finds it."""
    request._body = await read_body(request, BODY_MAX)
    if not request._body:
        return
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _JSON:
        raise RequestInvalid(
            f"the body is {kind[:80] or 'of no stated type'}, not JSON",
            hint=f"send the header Content-Type: {_JSON}",
            status=415,
        )
    try:
        request._json = orjson.loads(request._body)
    except ValueError as error:
        raise RequestInvalid(
            f"the body is not JSON: {error}", hint="send one JSON object, in UTF-8", status=400
        ) from None


def words(error: RequestValidationError) -> str:
    """The first faults, each with its place; never the value, which may be a secret or huge."""
    return "; ".join(
        f"{'.'.join(map(str, fault['loc']))[:200]}: {fault['msg'][:200]}" for fault in error.errors()[:_TOLD]
    )
