"""The bodies of `/v2`, which the service answers and the provider `remote` asks for.

    GET    /v2/capabilities                    ServiceView
    POST   /v2/sandboxes                       SandboxRequest -> SandboxView, pending, at once
    GET    /v2/sandboxes?label=NAME=VALUE      SandboxList; `label` may be repeated
    GET    /v2/sandboxes/{id}?wait=SECONDS     SandboxView, when it is pending no more or the wait is over
    DELETE /v2/sandboxes/{id}                  SandboxView, when it is gone; 404 when there is none
    POST   /v2/sandboxes/{id}/heartbeat        SandboxView
    POST   /v2/sandboxes/{id}/reset            SandboxView, when everything inside was killed and a new agent
                                               answers
    GET    /v2/sandboxes/{id}/endpoint         EndpointView: the agent's own address and a scoped token
    DELETE /v2/sandboxes/{id}/endpoint         body EndpointView: the token ends, and what it started
    POST   /v2/sandboxes/{id}/snapshot         orchard_core.Snapshot
    DELETE /v2/snapshots/{id}                  fine when it is gone
    ANY    /v2/sandboxes/{id}/agent/{path}     the agent's own answer

Every refusal is a Problem.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import ConfigDict, Field

from orchard_core import Capabilities, Record, SandboxSpec, Snapshot


class Problem(Record):
    """Why a request was refused, or a sandbox failed. Unknown fields are a newer service's."""

    model_config = ConfigDict(extra="ignore")

    error: str = ""
    """Class of orchard_core.errors, or of the service."""
    message: str
    """What happened, where."""
    hint: str = ""
    """What to do next; may be empty."""
    request_id: str = ""
    """As in the service's log."""


class SandboxRequest(Record):
    """What to create."""

    spec: SandboxSpec = SandboxSpec()
    """The sandbox; `name` is its id."""
    restore: Snapshot | None = None
    """Files to begin with."""
    timeout_s: float | None = Field(default=None, gt=0)
    """Seconds to readiness; None: the service's own."""


class SandboxView(Record):
    """One sandbox as its owner sees it."""

    model_config = ConfigDict(extra="ignore")

    id: str
    """Its id."""
    status: Literal["pending", "ready", "failed"]
    """How it stands."""
    spec: SandboxSpec
    """What it was created from; the content of its files is left out."""
    workdir: str = ""
    """Where commands start, when it is ready: a provider may have another directory stand for the spec's."""
    created: float
    """Seconds since the epoch."""
    problem: Problem | None = None
    """Why it failed or ended."""


class SandboxList(Record):
    """Sandboxes, oldest first."""

    model_config = ConfigDict(extra="ignore")

    sandboxes: tuple[SandboxView, ...] = ()
    """Those of this page."""
    next: str | None = None
    """What `cursor` of the next page is; None: there is none."""


class EndpointView(Record):
    """The agent itself, for who can reach it."""

    url: str | None
    """`http://HOST:PORT`; None when nobody outside the service can reach it."""
    reason: str = ""
    """Why there is none."""
    token: str = Field(default="", repr=False)
    """Good for commands and files of this sandbox, at the URL, or where there is none on the connections that
    WS /v2/sandboxes/{id}/agent/v1/raw gives."""
    sandbox_id: str
    """Sent with every call."""
    expires: float | None = None
    """When the token ends, seconds since the epoch."""


class ServiceView(Record):
    """What the service can do."""

    model_config = ConfigDict(extra="ignore")

    version: str = ""
    """Of orchard-env."""
    provider: str
    """Name of the provider behind it."""
    capabilities: Capabilities
    """The provider's."""
    heartbeat_s: float = 120.0
    """A sandbox that ever sent a heartbeat is destroyed when none came for so long."""


class ExtendRequest(Record):
    """A longer life."""

    ttl_s: float = Field(gt=0, le=31_536_000)
    """The sandbox lives at least so many seconds more, from now on."""


class ForkRequest(Record):
    """Copies of a sandbox."""

    count: int = Field(default=1, ge=1, le=64)
    """How many: all of them, or none."""
    timeout_s: float | None = Field(default=None, gt=0)
    """Seconds to readiness of each; None: the service's own."""


class MetricsView(Record):
    """What a sandbox's agent uses and holds."""

    model_config = ConfigDict(extra="ignore")

    rss_bytes: int
    """Resident memory of the agent; -1 where it cannot tell."""
    cpu_seconds: float
    """CPU time of the agent itself."""
    commands_cpu: float
    """CPU time of the commands that have ended."""
    uptime: float
    """Seconds since the agent began to serve."""
    execs_running: int
    """Commands that have not ended."""
    execs_total: int
    """Commands asked for so far."""
    spool_bytes: int
    """Disk that kept output takes."""
    requests_total: int
    """Calls so far."""
    requests_open: int
    """Calls being answered."""
    tunnels_open: int
    """Tunnels that stand."""
    forwards_open: int
    """Forwarded connections that stand."""
    orphans_collected: int
    """Adopted processes whose end was collected."""


class SnapshotList(Record):
    """Snapshots."""

    model_config = ConfigDict(extra="ignore")

    snapshots: tuple[Snapshot, ...]
    """Those that stand in the caller's name, in no order of their own."""


class UsageView(Record):
    """What the caller has."""

    model_config = ConfigDict(extra="ignore")

    tenant: str
    """Who the key belongs to."""
    scopes: tuple[str, ...]
    """What the key may do."""
    sandboxes: int
    """Sandboxes that stand."""
    cpu: float
    """CPU cores that they asked for; those that asked for none count 0."""
    memory_mb: int
    """MiB that they asked for, likewise."""
    snapshots: int = 0
    """Snapshots that stand."""
    snapshots_mb: int = 0
    """Disk of them together, MiB."""
    quota: Mapping[str, float | None]
    """Bounds by name, such as `sandboxes`, `cpu`, `memory_mb`; None: no bound."""


class FileView(Record):
    """One file as a listing or stat shows it."""

    model_config = ConfigDict(extra="ignore")

    name: str
    """Base name; bytes that are not UTF-8 are shown as U+FFFD, and `path_b64` has them."""
    path: str
    """Absolute path inside, likewise."""
    path_b64: str | None = None
    """The exact bytes of the path, where it is not UTF-8."""
    kind: Literal["file", "directory", "symlink", "other"]
    """What the entry itself is."""
    size: int
    """Bytes; 0 for anything that is no regular file."""
    mode: int
    """Permission bits."""
    modified: float
    """Seconds since the epoch."""
    link: str | None = None
    """Where a symbolic link points."""
    broken: bool = False
    """A link to nothing, or an entry that could not be read."""


class FileList(Record):
    """A directory."""

    path: str
    """As it was asked for."""
    entries: tuple[FileView, ...]
    """By name."""
    truncated: bool = False
    """There are more than were asked for; which of them are told is chance."""
