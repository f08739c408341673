"""The ASGI application."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fastapi import FastAPI
from starlette.types import ASGIApp

from orchard_env.service.services import Services

Part = Callable[[FastAPI, Services], None]
"""Adds routes to the application. A route's handler takes a starlette Request or WebSocket; the caller is
`request.scope["tenant"]` (a `seams.Tenant`) and `request.scope["request_id"]`, put there by the front, which
also makes an answer of every error that a handler raises."""


def build_app(services: Services, *, parts: Sequence[Part] = ()) -> ASGIApp:
    """The service over HTTP: v1, v2 where it is there, and the given parts."""
    raise NotImplementedError
