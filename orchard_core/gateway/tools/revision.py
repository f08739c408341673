"""Revisions of MCP: which are spoken, and what tells a request of the stateless one."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from orchard_core.gateway.tools.jsonrpc import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    UNSUPPORTED_VERSION,
    Message,
    RpcFault,
)

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Revisions that begin with `initialize`, oldest first."""
STATELESS = "2026-07-28"
"""The revision whose every request names it in `_meta` and whose headers repeat method and name."""
BATCHED = "2025-03-26"
"""The one revision with batches, and the one a request without a version header is taken for."""
KNOWN = (*HANDSHAKE, STATELESS)

_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_COMPLETE: Mapping[str, JsonValue] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def negotiated(asked: object) -> str:
    """What `initialize` answers: the client's revision where it is known, else our newest of that kind."""
    return asked if isinstance(asked, str) and asked in HANDSHAKE else HANDSHAKE[-1]


def is_stateless(message: Message) -> bool:
    """The request says in `_meta` which revision it follows."""
    meta = message.params.get("_meta")
    return message.method == "server/discover" or (isinstance(meta, dict) and _VERSION_KEY in meta)


def check_stateless(message: Message, headers: Mapping[bytes, bytes]) -> None:
    """Raises RpcFault when envelope, headers and body do not agree, or the revision is another."""
    meta = message.params.get("_meta")
    version = meta.get(_VERSION_KEY) if isinstance(meta, dict) else None
    if not isinstance(version, str):
        raise RpcFault(INVALID_PARAMS, f"`params._meta` is to name the revision under {_VERSION_KEY!r}")
    _agree(headers, b"mcp-protocol-version", version)
    _agree(headers, b"mcp-method", message.method)
    name = message.params.get("name")
    if message.method == "tools/call" and isinstance(name, str):
        _agree(headers, b"mcp-name", name)
    if version != STATELESS:
        supported: list[JsonValue] = list(KNOWN)
        data: JsonValue = {"supported": supported, "requested": version}
        raise RpcFault(UNSUPPORTED_VERSION, f"revision {version[:40]!r} is not spoken here", data=data)


def marked(result: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """A result with what the stateless revision demands of each: it is whole, and not to be cached."""
    return {**result, **_COMPLETE}


def _agree(headers: Mapping[bytes, bytes], name: bytes, said: str) -> None:
    if headers.get(name, b"").decode("latin-1") != said:
        raise RpcFault(HEADER_MISMATCH, f"the header {name.decode()} does not agree with the body")
