"""A command from a request to the agent."""

from __future__ import annotations

import base64
import binascii
import uuid
from typing import Literal

from orchard_core import AgentClient, RunTold
from orchard_env.service.faults import BodyTooLarge, RequestInvalid
from orchard_env.types.v2_exec import OUTPUT_MAX, ExecRequest

STDIN_MAX = 1 << 20
"""Bytes of input that travel with a command."""


async def begin(client: AgentClient, request: ExecRequest, *, exec_id: str, wait_s: float = 0.0) -> RunTold:
    """Start it, or attach to it, and tell how it stands after at most `wait_s` seconds (60 at most). Raises
    RequestInvalid, BodyTooLarge and what AgentClient.begin raises."""
    for name in request.env:
        if not name or "=" in name:
            raise RequestInvalid(f"env: {name[:40]!r} names no variable", hint="a name holds no =")
    argv = request.command if isinstance(request.command, str) else list(request.command)
    return await client.begin(
        argv,
        cwd=request.cwd,
        env=request.env,
        timeout=request.timeout_s,
        user=request.user,
        stdin=_input(request),
        output_limit=request.output_limit or OUTPUT_MAX,
        run_id=exec_id,
        lane=request.lane,
        wait_s=wait_s,
    )


def _input(request: ExecRequest) -> bytes | Literal["stream"]:
    if request.stdin is None:
        return "stream" if request.stdin_stream else b""
    if request.stdin_stream:
        raise RequestInvalid("stdin and stdin_stream exclude each other", hint="leave out one of them")
    data = _decoded(request.stdin, request.encoding)
    if len(data) > STDIN_MAX:
        raise BodyTooLarge(
            f"stdin has more than {STDIN_MAX >> 20} MiB",
            hint="start the command with stdin_stream and send its input to /execs/{id}/stdin",
        )
    return data


def _decoded(text: str, encoding: str) -> bytes:
    if encoding == "utf-8":
        return text.encode()
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise RequestInvalid("stdin is not base64, though encoding says so") from None


def new_exec_id() -> str:
    """An id that nobody else makes."""
    return uuid.uuid4().hex
