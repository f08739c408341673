"""Commands and their status as they cross the wire."""

from __future__ import annotations

import base64
import json
import math
import os
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from orchard_core.errors import ConfigError, ExecError, NotAnAgent
from orchard_core.sandbox.agent import read
from orchard_core.sandbox.contract import Command
from orchard_core.types.sandbox import ExecResult, PtySize

STATUS_MAX = 1 << 20
"""Bytes of JSON that tell how one run stands."""
INLINE_STDIN = 256 * 1024
"""Input up to this size travels with the command; more is streamed to it."""


def byte_string(value: str | bytes) -> str | dict[str, str]:
    """A byte string in the agent's JSON: text where it is UTF-8, base64 where it is not. Raises ExecError."""
    try:
        raw = os.fsencode(value)
    except UnicodeEncodeError as error:
        raise ExecError("half of a surrogate pair stands for no byte that a command could have") from error
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(raw).decode()}


def text_of(value: Any) -> str:
    """The inverse, with surrogateescape for what is not UTF-8."""
    return os.fsdecode(base64.b64decode(value["b64"])) if isinstance(value, dict) else str(value or "")


def frame(
    run_id: str,
    command: Command,
    *,
    cwd: str | None,
    env: Mapping[str, str] | None,
    timeout: float | None,
    user: str | None,
    stdin: str,
    output_limit: int | None,
    lane: str | None = None,
    note: str | None = None,
    pty: PtySize | None = None,
    inline: bytes = b"",
) -> bytes:
    """The body that starts a run: the spec's length, the spec, the inline input."""
    spec: dict[str, Any] = {"id": run_id}
    if isinstance(command, str):
        spec["script"] = byte_string(command)
    else:
        spec["argv"] = _argv(command)
    if cwd is not None:
        spec["cwd"] = byte_string(cwd)
    if env:
        spec["env"] = [[byte_string(name), byte_string(value)] for name, value in env.items()]
    if timeout is not None:
        spec["timeout"] = _limit(timeout)
    given = {"user": user, "stdin": stdin, "output_limit": output_limit, "lane": lane, "note": note}
    if pty is not None:
        spec["pty"] = {"rows": pty.rows, "cols": pty.cols}
    spec |= {name: value for name, value in given.items() if value}
    raw = json.dumps(spec, separators=(",", ":")).encode()
    return struct.pack(">I", len(raw)) + raw + inline


def _limit(timeout: float) -> float:
    if timeout <= 0:
        raise ConfigError(f"a time-out of {timeout} s leaves a command no time", hint="use None for no limit")
    if not math.isfinite(timeout):
        raise ConfigError(f"a time-out of {timeout} s is no number", hint="use None for no limit")
    return timeout


def _argv(command: Sequence[str]) -> list[str | dict[str, str]]:
    if not command:
        raise ConfigError("an empty argv names no program")
    return [byte_string(argument) for argument in command]


def parse(body: bytes) -> tuple[dict[str, Any], bytes]:
    """Status and the output bytes behind it. Raises NotAnAgent."""
    try:
        (length,) = struct.unpack_from(">I", body)
        if length > STATUS_MAX:
            raise ValueError(f"a status of {length} bytes")
        status = json.loads(body[4 : 4 + length])
        if not isinstance(status, dict):
            raise TypeError("a status that is no object")
    except (struct.error, ValueError, TypeError, RecursionError) as error:
        raise NotAnAgent(f"what answers is not an agent: {body[:80]!r}") from error
    return status, body[4 + length :]


def result(status: dict[str, Any], output: bytes) -> ExecResult:
    """The result of a run that has ended. Raises KeyError and TypeError for what is none."""
    out, err = status["stdout"], status["stderr"]
    kept_out, kept_err = (read.count(one["head"]) + read.count(one["tail"]) for one in (out, err))
    out_size, err_size = read.count(out["size"]), read.count(err["size"])
    timed_out = status["timed_out"] is True
    return ExecResult(
        exit_code=read.whole(status["exit_code"]),
        stdout=output[:kept_out],
        stderr=output[kept_out : kept_out + kept_err],
        stdout_size=out_size,
        stderr_size=err_size,
        stdout_truncated=kept_out < out_size,
        stderr_truncated=kept_err < err_size,
        timed_out=timed_out,
        limit_s=read.number(status["timeout"]) if timed_out else None,
        duration_s=read.number(status["duration"]),
    )
