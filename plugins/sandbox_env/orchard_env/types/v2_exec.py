"""Commands in `/v2`: what is asked for and what is told.

POST /v2/sandboxes/{id}/exec               ExecRequest -> ExecView, with its output when it has ended
POST /v2/sandboxes/{id}/exec/stream        ExecRequest -> server-sent events
WS   /v2/sandboxes/{id}/exec/stream        the same events, and input, over one socket
POST /v2/sandboxes/{id}/execs              ExecRequest -> ExecView, at once
GET  /v2/sandboxes/{id}/execs              ExecList
GET  /v2/sandboxes/{id}/execs/{exec_id}    ExecView
GET  /v2/sandboxes/{id}/execs/{exec_id}/logs      LogView
GET  /v2/sandboxes/{id}/execs/{exec_id}/events    server-sent events
POST /v2/sandboxes/{id}/execs/{exec_id}/stdin     raw bytes -> StdinView
POST /v2/sandboxes/{id}/execs/{exec_id}/signal    SignalRequest -> SignalView
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints

from orchard_core import Record

Encoding = Literal["utf-8", "base64"]
"""How bytes stand in JSON: as text, in which what is not UTF-8 becomes U+FFFD, or exactly."""

ExecId = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,127}$", min_length=1, max_length=128)
]
"""Made by the client, never used for another command."""

SECONDS_MAX = 31_536_000.0
"""A year: longer than any command runs."""
OUTPUT_MAX = 16 << 20
"""Bytes of each output that one answer carries."""


class ExecRequest(Record):
    """A command. Asking again with the same `id` attaches to the same run, whatever became of the first
    request; it never runs twice."""

    command: str | tuple[str, ...]
    """A string for the shell, or argv, which never meets one."""
    id: ExecId | None = None
    """None: the service makes one, and a lost answer cannot be asked for again."""
    cwd: str | None = None
    """Working directory; None: the sandbox's own."""
    env: Mapping[str, str] = Field(default_factory=dict)
    """Over the sandbox's own environment."""
    user: str | None = None
    """Who runs it: `name`, `uid` or `uid:gid`; None: the sandbox's own user."""
    timeout_s: float | None = Field(default=None, gt=0, le=SECONDS_MAX)
    """The command and all its children are killed after so many seconds."""
    stdin: str | None = None
    """Its whole input, in `encoding`, 1 MiB at most; None: none, or what is sent to it later."""
    stdin_stream: bool = False
    """Its input is sent to it later; `stdin` is then left out."""
    lane: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,64}$")] | None = None
    """Commands of one lane run one after the other."""
    output_limit: int | None = Field(default=None, ge=2, le=OUTPUT_MAX)
    """Bytes of each output that are kept, half of them the head, half the tail; 16 MiB when None."""
    encoding: Encoding = "utf-8"
    """How `stdin` is written, and how output is told."""


class OutputView(Record):
    """One output of a command that has ended."""

    model_config = ConfigDict(extra="ignore")

    data: str
    """What was kept of it, in the encoding asked for."""
    size: int
    """Bytes that the command really wrote."""
    truncated: bool
    """`data` lacks its middle."""


class ExecView(Record):
    """How a command stands."""

    model_config = ConfigDict(extra="ignore")

    id: str
    """Its id."""
    sandbox_id: str
    """Where it runs."""
    state: Literal["queued", "running", "exited", "failed"]
    """`queued`: it waits for its turn in its lane. `failed`: it could not be started when that came."""
    created: float | None = None
    """When it was asked for, seconds since the epoch by the sandbox's clock."""
    started: float | None = None
    """When it began."""
    ended: float | None = None
    """When it ended."""
    exit_code: int | None = None
    """Its own, or 128 + n after signal n; None until it has ended."""
    timed_out: bool = False
    """It was killed because it ran past `timeout_s`: no exit code says so."""
    timeout_s: float | None = None
    """The limit that fired, seconds."""
    duration_s: float | None = None
    """From start to end, seconds."""
    encoding: Encoding = "utf-8"
    """Of `data` below."""
    stdout: OutputView | None = None
    """None until it has ended, and where outputs were not asked for."""
    stderr: OutputView | None = None
    """Likewise."""
    failure: str | None = None
    """Why it could not be started."""


class ExecList(Record):
    """The commands of a sandbox that are known, in the order of their arrival."""

    execs: tuple[ExecView, ...] = ()
    """Without outputs."""


class LogView(Record):
    """A piece of a command's output."""

    model_config = ConfigDict(extra="ignore")

    stream: Literal["stdout", "stderr"]
    """Which output."""
    cursor: int
    """Where `data` begins; after the cursor asked for when the bytes between are no longer kept."""
    next: int
    """The cursor to ask for next."""
    size: int
    """Bytes written so far."""
    ended: bool
    """No more will follow."""
    encoding: Encoding
    """Of `data`."""
    data: str
    """The piece."""


class SignalRequest(Record):
    """A signal."""

    signal: int = Field(ge=1, le=64)
    """Its number: 15 asks a program to end, 9 ends it."""
    to: Literal["group", "process", "tree"] = "group"
    """`tree`: everything that a time-out would end; signal 9 only."""


class SignalView(Record):
    """What became of a signal."""

    delivered: bool
    """False: the command has ended."""


class StdinView(Record):
    """How much of a command's input has arrived."""

    received: int
    """Bytes so far; the offset to go on at."""
