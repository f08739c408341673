"""Paths in queries: bytes, as they are on Linux."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import quote_from_bytes, unquote_to_bytes

from fastapi import Request

from orchard_env.service.faults import RequestInvalid
from orchard_env.service.passthrough import target_of


def path_in(request: Request, name: str = "path") -> str:
    """The path of that name, with surrogate escapes for what is not UTF-8. Raises RequestInvalid when it
    is not there once, or is no absolute path."""
    found = [
        value
        for said, _, value in (part.partition(b"=") for part in request.scope["query_string"].split(b"&"))
        if unquote_to_bytes(said) == name.encode()
    ]
    if len(found) != 1:
        raise RequestInvalid(
            f"{name} stands {len(found)} times in the query", hint=f"write ?{name}=/a/path once"
        )
    raw = unquote_to_bytes(found[0].replace(b"+", b" "))
    if not raw.startswith(b"/") or b"\0" in raw:
        raise RequestInvalid(f"{name} is no absolute path", hint="it begins with / and holds no NUL")
    return os.fsdecode(raw)


def agent_target(path: str, query: Mapping[str, str | None]) -> str:
    """A call of the agent with its query; None is left out. Raises RequestInvalid when it is too long."""
    pairs = [
        f"{name}={quote_from_bytes(os.fsencode(value))}" for name, value in query.items() if value is not None
    ]
    return target_of(path, "&".join(pairs).encode())


def flag(value: bool) -> str | None:
    """As the agent reads it."""
    return "1" if value else None
