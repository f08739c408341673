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
    created: float
    """Seconds since the epoch."""
    problem: Problem | None = None
    """Why it failed or ended."""


class SandboxList(Record):
    """Sandboxes, oldest first."""

    sandboxes: tuple[SandboxView, ...] = ()
    """All that match."""


class EndpointView(Record):
    """The agent itself, for who can reach it."""

    url: str
    """`http://HOST:PORT`, or `unix:PATH` on the service's own machine."""
    token: str = Field(repr=False)
    """Good for commands and files of this sandbox."""
    sandbox_id: str
    """Sent with every call."""


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
