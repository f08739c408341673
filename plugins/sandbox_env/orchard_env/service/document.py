"""The OpenAPI document: what FastAPI finds of the routes, and the request bodies that our handlers read."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

_TEMPLATE = "#/components/schemas/{model}"


def document(app: FastAPI) -> dict[str, Any]:
    """Made once."""
    if app.openapi_schema is None:
        made = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        schemas = made.setdefault("components", {}).setdefault("schemas", {})
        schemas |= _bodies(getattr(app.state, "bodies", []))
        made["components"]["securitySchemes"] = {
            "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"}
        }
        made["security"] = [{"key": []}]
        for path in ("/", "/health"):
            made["paths"][path]["get"]["security"] = []
        app.openapi_schema = made
    return app.openapi_schema


def takes_body(app: FastAPI, model: type[BaseModel]) -> dict[str, Any]:
    """What a route says of its request's body; the model's schema comes into the document."""
    if not hasattr(app.state, "bodies"):
        app.state.bodies = []
    app.state.bodies.append(model)
    schema = {"$ref": _TEMPLATE.format(model=model.__name__)}
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _bodies(models: list[type[BaseModel]]) -> dict[str, Any]:
    _, made = models_json_schema(
        [(model, "validation") for model in dict.fromkeys(models)], ref_template=_TEMPLATE
    )
    return dict(made.get("$defs", {}))
