"""The refusals that the document of the API tells of."""

from __future__ import annotations

from typing import Any

from orchard_env.types.v2 import Problem

_WORDS = {
    400: "No HTTP, or no JSON",
    401: "No API key",
    403: "The key is wrong, or not for this; or the sandbox's user may not do it",
    404: "No such sandbox, command, file or snapshot, or it is another tenant's",
    405: "Not by this method",
    408: "A wait, or the body, took too long",
    409: "What stands there does not allow it",
    410: "The sandbox has ended",
    413: "Too large",
    414: "The address is too long",
    415: "The body is no JSON",
    416: "The file is shorter than that",
    422: "The request is not what this document says, or cannot be had",
    429: "A quota, or the tenant's rate, is used up",
    502: "The sandbox did not come up, or what answers in it is not its agent",
    431: "Line and headers of the request are too large; the connection closes",
    503: "No room now, or the sandbox cannot be reached; see Retry-After",
}

_PROBLEM = {"$ref": f"#/components/schemas/{Problem.__module__.replace('.', '__')}__{Problem.__name__}"}
"""As FastAPI names it, because v1 has a Problem as well. With `model=` it would compile one for each status
of each route, which is most of what starting a service takes."""

REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"content": {"application/json": {"schema": _PROBLEM}}, "description": f"{text}."}
    for status, text in _WORDS.items()
}
"""For `responses=` of every route."""
