"""What v1 takes and gives. Answers of the hot path are built by hand; their models stand in the document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from orchard_env.service.http import Body

Environment = dict[Annotated[str, Field(pattern=r"^[^=\x00]+$")], str]
"""Names have no `=` in them."""
Number = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]


class CreateSandbox(Body):
    """A sandbox to make."""

    image: Annotated[str, Field(min_length=1, max_length=1024)]
    """`python:3.12` and the like; `host` and `rootfs:PATH` with the local provider."""
    block_network: bool = True
    """Nothing outside is reached; false: any public address."""
    sandbox_id: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")] | None = None
    """The id to give it; one that is taken is refused with 409."""
    cpu: str | float | None = None
    """Cores: `4`, `0.5` or `2000m`."""
    memory: str | float | None = None
    """`16Gi`, `512Mi`, `2G` or bytes."""
    timeout: Number | None = None
    """Seconds to readiness, after which it has failed."""
    env: Environment | None = None
    """Environment of every command; no place for secrets."""
    labels: dict[str, str] | None = None
    """For people and lists; names that begin with `orchard.dev/` are ours."""
    ttl: Number | None = None
    """Seconds until it is destroyed, whoever uses it."""
    idle_ttl: Number | None = None
    """Seconds without a call until it is destroyed."""


class SandboxBody(Body):
    """A sandbox as it stands."""

    sandbox_id: str
    """Its id."""
    namespace: str
    """Where it lives."""
    image: str
    """As asked for."""
    block_network: bool
    """As asked for."""
    cpu: str | None
    """As asked for."""
    memory: str | None
    """As asked for."""
    timeout: float | None
    """As asked for."""
    status: Literal["pending", "ready", "failed"]
    """How it stands."""
    error: str | None = None
    """Why it failed."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Its labels; `orchard.dev/image-fallback` says that it runs on another image than the one
    asked for, `orchard.dev/isolated` false that commands run on the service's machine as they are."""


class Deleted(Body):
    """A sandbox that is gone."""

    status: Literal["deleted"]
    """Always so."""
    sandbox_id: str
    """Which."""


class Beaten(Body):
    """A heartbeat that was heard."""

    status: Literal["ok"]
    """Always so."""
    sandbox_id: str
    """Of which sandbox."""


class ExecCommand(Body):
    """A command to run."""

    command: Annotated[str, Field(min_length=1)] | Annotated[list[str], Field(min_length=1)]
    """A string for the shell, or argv, which meets no shell."""
    timeout_seconds: Number | None = None
    """It is killed after so long, with all that it started."""
    cwd: str | None = None
    """Where; the sandbox's working directory when absent."""
    env: Environment | None = None
    """Added to the sandbox's own environment, byte for byte."""
    login_shell: bool = False
    """Read the profile files first."""
    wait: bool = False
    """Answer when it has ended, or when the server has waited long enough."""
    exec_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,100}$")] | None = None
    """Made by the client, once per command: sending it again attaches to the same run and starts nothing."""


class JobBody(Body):
    """A command as it stands. One that is just queued has no more than `job_id` and `status`."""

    job_id: str
    """Its id."""
    sandbox_id: str | None = None
    """Where it runs."""
    command: str | list[str] | None = None
    """As sent; null for one of more than 8 KiB that was asked for elsewhere or later."""
    status: Literal["queued", "running", "succeeded", "failed"]
    """How it stands."""
    stdout: str | None = None
    """What it said; undecodable bytes become U+FFFD."""
    stderr: str | None = None
    """Likewise."""
    exit_code: int | None = None
    """Its own code, 128 + n after signal n, 124 after a time-out."""
    created_at: float | None = None
    """Seconds since the epoch."""
    started_at: float | None = None
    """Seconds since the epoch."""
    completed_at: float | None = None
    """Seconds since the epoch."""
    error: str | None = None
    """Why it failed, when its exit code does not say it: a time-out, a command that could not be started."""
    timed_out: bool | None = None
    """Whether a time-out ended it."""
    duration: float | None = None
    """Seconds from start to end."""
    stdout_size: int | None = None
    """Bytes that it really wrote."""
    stderr_size: int | None = None
    """Likewise."""
    stdout_truncated: bool | None = None
    """The middle of `stdout` was dropped."""
    stderr_truncated: bool | None = None
    """Likewise."""


class ApplyPatch(Body):
    """A patch for the sandbox's files."""

    patch: Annotated[str, Field(min_length=1)]
    """A unified diff, as `git diff` writes it."""
    timeout_seconds: Number = 30.0
    """It is given up after so long."""
    cwd: str | None = None
    """Where; the sandbox's working directory when absent."""


class Patched(Body):
    """What became of a patch."""

    success: bool
    """Whether all of it was applied; else none of it was."""
    stdout: str
    """What the tool said."""
    stderr: str
    """Likewise."""
    exit_code: int | None
    """Of the tool."""
    error: str | None
    """Why it was not applied."""


class WriteFile(Body):
    """A file to write."""

    path: Annotated[str, Field(min_length=1)]
    """Absolute, or relative to the sandbox's working directory."""
    content: str
    """Base64."""
    mode: Annotated[str, Field(pattern=r"^[0-7]{3,4}$")] | None = None
    """Permission bits, octal; 644 when absent."""


class Written(Body):
    """A file that was written."""

    success: bool
    """Always true."""
    path: str
    """Where."""
    size: int
    """Bytes."""


class FileBody(Body):
    """A file's content."""

    path: str
    """Which."""
    content: str
    """Base64."""
    size: int
    """Bytes."""


class Listed(Body):
    """One entry of a directory."""

    name: str
    """Base name; bytes that are no UTF-8 become U+FFFD."""
    type: Literal["file", "directory"]
    """What it is, or what a link leads to."""
    size: int
    """Bytes."""
    modified: str
    """ISO 8601, UTC."""
    name_b64: str | None = None
    """The exact name in base64, where `name` could not hold it."""
    link: str | None = None
    """Where a symbolic link points."""


class Listing(Body):
    """A directory."""

    path: str
    """Which."""
    files: list[Listed]
    """Its entries by name."""


class Amount(Body):
    """Of one resource."""

    total: float
    """All there is."""
    used: float
    """What is taken."""
    free: float
    """What is left."""


class Resources(Body):
    """What the provider has."""

    nodes: int
    """Machines."""
    cpu: Amount
    """Cores."""
    memory: Amount
    """Bytes."""
    sandboxes: int
    """That this service knows of."""
    provider: str
    """Whose."""


class Problem(Body):
    """Every refusal."""

    detail: Any
    """The message again, where programs written for FastAPI look for it."""
    error: str
    """The kind."""
    message: str
    """What happened, and where."""
    hint: str
    """What to do next."""
    request_id: str
    """As in the service's log."""
