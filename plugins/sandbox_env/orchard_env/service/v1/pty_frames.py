"""Frames of a v1 terminal's client."""

from __future__ import annotations

import base64
import binascii
import signal
from collections.abc import Mapping
from typing import Any

import orjson
from pydantic import Field, ValidationError, field_validator
from starlette.websockets import WebSocket, WebSocketDisconnect

from orchard_env.service.faults import RequestInvalid
from orchard_env.service.http import Body

_FRAME_MAX = 4 << 20
_SIGNALS = {name: signal.Signals[f"SIG{name}"] for name in ("TERM", "KILL", "INT", "HUP")}


class Init(Body):
    """What to run."""

    cmd: tuple[str, ...] = Field(min_length=1)
    """Argv."""
    env: Mapping[str, str] | None = None
    """Over the sandbox's own environment."""
    cwd: str | None = None
    """Where; None: the sandbox's working directory."""
    rows: int = Field(default=24, ge=1, le=65535)
    """Lines of the terminal."""
    cols: int = Field(default=80, ge=1, le=65535)
    """Characters of a line."""
    login_shell: bool = False
    """Read the profile first."""

    @field_validator("cmd", mode="before")
    @classmethod
    def _one(cls, value: object) -> object:
        return ("/bin/sh", "-c", value) if isinstance(value, str) else value


class Resize(Body):
    """A new size."""

    rows: int = Field(ge=1, le=65535)
    """Lines."""
    cols: int = Field(ge=1, le=65535)
    """Characters of a line."""


class Sent(Body):
    """Keys."""

    data: str
    """Base64."""

    @property
    def bytes(self) -> bytes:
        """What was typed. Raises RequestInvalid."""
        try:
            return base64.b64decode(self.data, validate=True)
        except (binascii.Error, ValueError):
            raise RequestInvalid("stdin: data is not base64") from None


Frame = Init | Sent | Resize | signal.Signals | None
"""None: the client closes."""


async def read_frame(socket: WebSocket) -> Frame:
    """The next frame. Raises RequestInvalid, WebSocketDisconnect."""
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1005))
    text = message.get("text")
    if text is None or len(text) > _FRAME_MAX:
        raise RequestInvalid("a frame is binary or over 4 MiB", hint="send JSON text, keys in small pieces")
    try:
        said = orjson.loads(text)
        kind = said["type"]
    except (ValueError, KeyError, TypeError):
        raise RequestInvalid("a frame is no JSON object with a type", hint="init, stdin, ...") from None
    try:
        return _read(kind, said)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        raise RequestInvalid(f"{kind}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}") from None


def _read(kind: object, said: dict[str, Any]) -> Frame:
    if kind == "stdin":
        return Sent.model_validate(said)
    if kind == "resize":
        return Resize.model_validate(said)
    if kind == "init":
        return Init.model_validate(said)
    if kind == "close":
        return None
    if kind == "signal":
        name = str(said.get("sig", "")).upper().removeprefix("SIG")
        if name in _SIGNALS:
            return _SIGNALS[name]
        raise RequestInvalid(f"signal: no signal {name[:20]!r} here", hint="TERM, KILL, INT or HUP")
    raise RequestInvalid(
        f"no frame has the type {str(kind)[:40]!r}", hint="init, stdin, signal, resize, close"
    )
