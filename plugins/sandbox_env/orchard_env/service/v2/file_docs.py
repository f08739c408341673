"""What the document of the API says of calls whose bodies are bytes."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query

TAR = "application/x-tar"
PathQuery = Annotated[
    str,
    Query(
        min_length=1,
        max_length=16384,
        description="Absolute path inside; bytes that are not UTF-8 are percent-encoded as they are.",
    ),
]
User = Annotated[
    str | None,
    Query(
        max_length=256,
        description="Whose rights it is done with: `name`, `uid` or `uid:gid`.",
    ),
]
Mode = Annotated[str | None, Query(pattern="^[0-7]{1,4}$", description="Permission bits, octal.")]

_BYTES = {"schema": {"type": "string", "format": "binary"}}
CONTENT: dict[str, Any] = {
    "description": "The bytes. Status 206 and Content-Range when a Range was asked for.",
    "content": {"application/octet-stream": _BYTES},
}
ARCHIVE: dict[str, Any] = {"description": "A tar stream.", "content": {TAR: _BYTES}}
DONE: dict[str, Any] = {
    "description": "What was done.",
    "content": {"application/json": {"schema": {"type": "object"}}},
}


def body(kind: str) -> dict[str, Any]:
    """A request's body that is bytes."""
    return {"required": True, "content": {kind: _BYTES}}
