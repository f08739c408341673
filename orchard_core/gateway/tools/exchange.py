"""One HTTP exchange about tools, read and answered whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orchard_core.gateway.faults import redact
from orchard_core.gateway.json_text import dumps


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequest:
    """What a program sent."""

    method: str
    """HTTP method."""
    path: str
    """Path, percent-decoded, without the query."""
    headers: Mapping[bytes, bytes]
    """Headers by lower-case name; of a repeated one, the last."""
    body: bytes
    """The whole body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReply:
    """What it gets."""

    status: int
    """HTTP status."""
    body: bytes = b""
    """JSON; empty: none."""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    """Headers beside the content's."""


def replied(value: object, *headers: tuple[bytes, bytes], status: int = 200) -> ToolReply:
    """An answer of JSON."""
    return ToolReply(status=status, body=dumps(value), headers=headers)


def refused(status: int, message: str, *headers: tuple[bytes, bytes], code: str) -> ToolReply:
    """An error, in the shape that OpenAI's clients know. Keys are redacted."""
    error = {"message": redact(message), "type": "invalid_request_error", "param": None, "code": code}
    return replied({"error": error}, *headers, status=status)
