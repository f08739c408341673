"""The calls that a service has, read off its own table: one that is added later is attacked as well."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fastapi import FastAPI
from orchard_env.service.services import Services
from starlette.routing import BaseRoute, WebSocketRoute

ANY = ("DELETE", "GET", "PATCH", "POST", "PUT")


@dataclass(frozen=True, order=True, kw_only=True)
class Door:
    """One call."""

    path: str
    """A template."""
    method: str
    """WS: a WebSocket."""
    open: bool = False
    """Takes every method, whatever there is behind it."""

    def at(self, **values: str) -> str:
        """The path with these for its parameters."""
        return re.sub(r"\{(\w+)(?::path)?\}", lambda found: values[found[1]], self.path)


class Doors:
    """A part of an application, the last one: what was added before it."""

    def __init__(self) -> None:
        self.all: set[Door] = set()

    def __call__(self, app: FastAPI, services: Services) -> None:
        """See `app.Part`."""
        self.all.update(_doors(app.router.routes, ""))


def _doors(routes: Iterable[BaseRoute], prefix: str) -> Iterator[Door]:
    for route in routes:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            yield from _doors(inner.routes, prefix + route.include_context.prefix)  # type: ignore[attr-defined]
            continue
        path = prefix + str(getattr(route, "path", ""))
        if isinstance(route, WebSocketRoute):
            yield Door(path=path, method="WS")
            continue
        methods: Sequence[str] | None = getattr(route, "methods", None)
        for method in sorted(methods or ANY):
            yield Door(path=path, method=method, open=not methods)
