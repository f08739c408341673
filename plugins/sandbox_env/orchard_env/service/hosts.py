"""By which names a service may be called. Without keys this is what keeps out the pages of a browser on the
same machine: theirs are cross-site requests, or come by a name that an attacker points here."""

from __future__ import annotations

from collections.abc import Container
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from orchard_env.service.faults import KeyRefused

LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""Names of this machine for itself."""


def check_host(headers: Headers, allowed: Container[str]) -> None:
    """Raises KeyRefused for a request that calls the service, or comes from a page, by another name."""
    for name in ("host", "origin"):
        told = headers.get(name)
        if told is not None and _hostname(told) not in allowed:
            raise KeyRefused(
                f"a service without keys takes no request whose header {name} names {told[:80]!r}",
                hint="call it by localhost, or serve with --keys",
            )


def _hostname(text: str) -> str:
    """`http://name:port` or `name:port` as `name`; empty when it is neither."""
    try:
        return urlsplit(text if "//" in text else f"//{text}").hostname or ""
    except ValueError:
        return ""
