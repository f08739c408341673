"""The list of models: a session has one."""

from __future__ import annotations

from urllib.parse import unquote

from orchard_core.gateway.json_text import dumps
from orchard_core.gateway.session import Session
from orchard_core.types.model import Dialect

MODELS = "/v1/models"
"""Where it is served."""


def models_of(session: Session, dialect: Dialect) -> bytes:
    """The list, in the shape that clients of a dialect expect."""
    name = session.endpoint.model
    if dialect is Dialect.MESSAGES:
        return dumps({"data": [_model(name, dialect)], "has_more": False, "first_id": name, "last_id": name})
    return dumps({"object": "list", "data": [_model(name, dialect)]})


def model_named(path: str, session: Session, dialect: Dialect) -> bytes | None:
    """The model that stands in the path after the list's; None for another than the session's."""
    name = unquote(path.removeprefix(f"{MODELS}/"))
    return dumps(_model(name, dialect)) if name == session.endpoint.model else None


def _model(name: str, dialect: Dialect) -> dict[str, object]:
    if dialect is Dialect.MESSAGES:
        return {"type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z"}
    return {"id": name, "object": "model", "created": 0, "owned_by": "orchard"}
