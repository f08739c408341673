"""JSON-RPC 2.0 as MCP uses it: reading messages, writing answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
CANCELLED = -32000
HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022

RequestId = str | int
"""MCP allows no null and no fractions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A request or a notification."""

    id: RequestId | None
    """What the answer names; None: a notification, which gets none."""
    method: str
    """What is asked."""
    params: Mapping[str, JsonValue] = field(default_factory=dict)
    """Named arguments."""


class RpcFault(Exception):
    """A request that gets an error for its answer; the message is for the sender."""

    def __init__(self, code: int, message: str, *, data: JsonValue = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


def read_message(value: object) -> Message | None:
    """A request or notification; None for an answer, which nobody here waits for. Raises RpcFault."""
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        raise RpcFault(INVALID_REQUEST, 'a JSON-RPC 2.0 message is an object with "jsonrpc": "2.0"')
    if "method" not in value and ("result" in value or "error" in value):
        return None
    method, params = value.get("method"), value.get("params", {})
    if not isinstance(method, str):
        raise RpcFault(INVALID_REQUEST, "`method` is to be a string")
    if not isinstance(params, dict):
        raise RpcFault(INVALID_PARAMS, "`params` is to be an object")
    if "id" in value and id_of(value) is None:
        raise RpcFault(INVALID_REQUEST, "`id` is to be a string or a whole number")
    return Message(id=id_of(value), method=method, params=params)


def id_of(value: object) -> RequestId | None:
    """The id of what may be a message; None without a usable one."""
    found = value.get("id") if isinstance(value, dict) else None
    usable = isinstance(found, str) or (isinstance(found, int) and not isinstance(found, bool))
    return found if usable else None


def success(id: RequestId, result: JsonValue) -> JsonValue:  # noqa: A002 - the protocol's word
    """An answer."""
    return {"jsonrpc": "2.0", "id": id, "result": result}


def failure(id: RequestId | None, fault: RpcFault) -> JsonValue:  # noqa: A002 - the protocol's word
    """An error for an answer."""
    error: dict[str, JsonValue] = {"code": fault.code, "message": str(fault)}
    if fault.data is not None:
        error["data"] = fault.data
    return {"jsonrpc": "2.0", "id": id, "error": error}
