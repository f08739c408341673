"""Entries of an agent's listing as `/v2` tells them."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Literal

import orjson

from orchard_core import NotAnAgent
from orchard_env.types.v2 import FileView

_KINDS: dict[str, Literal["file", "directory", "symlink", "other"]] = {
    "file": "file",
    "directory": "directory",
    "symlink": "symlink",
}


def file_view(line: bytes) -> FileView:
    """One line of the agent's. Raises NotAnAgent for what no agent says."""
    try:
        return _read(orjson.loads(line))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, binascii.Error) as error:
        raise NotAnAgent(f"no agent describes a file so: {line[:80]!r}") from error


def _read(said: dict[str, Any]) -> FileView:
    kind = _KINDS.get(said["type"], "other")
    path = _raw(said["path"])
    return FileView(
        name=_text(_raw(said["name"])),
        path=_text(path),
        path_b64=None if _is_text(path) else base64.b64encode(path).decode(),
        kind=kind,
        size=max(0, int(said["size"])) if kind == "file" else 0,
        mode=int(said["mode"]),
        modified=float(said["mtime"]),
        link=_text(_raw(said.get("target"))) if kind == "symlink" else None,
        broken=bool(said.get("broken", False)),
    )


def _raw(value: Any) -> bytes:
    return base64.b64decode(value["b64"]) if isinstance(value, dict) else str(value or "").encode()


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True
