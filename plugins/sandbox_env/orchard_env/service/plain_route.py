"""A route that FastAPI has no part in."""

from __future__ import annotations

from starlette.routing import Match, Route
from starlette.types import Scope


class PlainRoute(Route):
    """Starlette's, which does not say which one it is; logs and metrics name it by its template."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """See Route."""
        match, found = super().matches(scope)
        return match, {**found, "route": self} if found else found
