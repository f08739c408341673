"""What a sandbox is made of, what it gives back, and what a provider can do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from pydantic import Field, field_validator

from orchard_core.errors import ConfigError
from orchard_core.types.base import Record

ImageKind = Literal["host", "rootfs", "oci", "build"]


class ImageRef(Record):
    """`host` | `rootfs:PATH` | `oci:REF` | `build:DIR`: what the root file system is made from."""

    kind: ImageKind
    """host: an allow-list of this machine's own files; rootfs: an unpacked tree; oci: a registry
    reference; build: a directory with a Dockerfile."""
    value: str = ""
    """The path, reference or directory; empty for `host`."""

    @classmethod
    def parse(cls, text: str) -> ImageRef:
        """Read the written form. Raises ConfigError for any other text."""
        kind, _, value = text.partition(":")
        if kind == "host" and not value:
            return cls(kind="host")
        if kind == "rootfs" and value:
            return cls(kind="rootfs", value=value)
        if kind == "oci" and value:
            return cls(kind="oci", value=value)
        if kind == "build" and value:
            return cls(kind="build", value=value)
        raise ConfigError(
            f"image {text!r} is not understood",
            hint="write host, rootfs:PATH, oci:REFERENCE or build:DIRECTORY",
        )

    def __str__(self) -> str:
        return f"{self.kind}:{self.value}" if self.value else self.kind


class NetworkMode(StrEnum):
    """What a sandbox may reach."""

    NONE = "none"
    """Nothing but its own loopback. The default."""
    ALLOW_LIST = "allow-list"
    """Named hosts only, through the driver's proxy."""
    OPEN = "open"
    """Any public address, through the driver's proxy; never loopback, private or metadata addresses."""
    HOST = "host"
    """The host's own network, without isolation; only when asked for by name."""


class Network(Record):
    """A network policy."""

    mode: NetworkMode = NetworkMode.NONE
    """What may be reached."""
    allow: tuple[str, ...] = ()
    """Host names, or `*.suffix`, for `allow-list`; each on ports 80 and 443 unless `name:port` is given."""


class FileInput(Record):
    """A file put into a sandbox before anything runs."""

    path: str
    """Absolute path inside."""
    content: bytes
    """The whole content."""
    mode: int = 0o644
    """Permission bits."""


class Mount(Record):
    """A directory or file of the host shown inside, read-only."""

    source: str
    """Absolute path on the host."""
    target: str
    """Absolute path inside."""


class SandboxSpec(Record):
    """What to create. A provider refuses, before it starts anything, what it cannot give."""

    name: str | None = None
    """The sandbox's id, as a DNS label: at most 63 of a-z, 0-9 and -; None: the provider makes one. A name
    that is taken is refused (SandboxExists): nobody is handed a stranger's sandbox."""
    image: ImageRef = ImageRef(kind="host")
    """The root file system."""
    cpu: float | None = None
    """CPU cores; None leaves the provider's default."""
    memory_mb: int | None = None
    """Memory limit, MiB; None leaves the provider's default."""
    disk_mb: int | None = None
    """Limit of the writable layer, MiB; None leaves the provider's default."""
    pids: int | None = None
    """Largest number of processes and threads; None leaves the provider's default."""
    network: Network = Network()
    """What may be reached from inside."""
    ttl_s: float = 4 * 3600.0
    """Life span from creation, seconds; the sandbox is then destroyed, whoever uses it."""
    idle_ttl_s: float | None = None
    """Destroyed after this many seconds without a call; None: never for idleness."""
    env: Mapping[str, str] = Field(default_factory=dict)
    """Environment of every command; never a place for secrets."""
    files: tuple[FileInput, ...] = ()
    """Written before anything runs."""
    mounts: tuple[Mount, ...] = ()
    """Read-only pieces of the host."""
    user: str | None = None
    """User name or `uid[:gid]` commands run as; None: the provider's default."""
    workdir: str = "/workspace"
    """Created if missing; where commands run unless told otherwise."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    """For people and reapers, such as the run and rollout ids."""

    @field_validator("image", mode="before")
    @classmethod
    def _image_text(cls, value: object) -> object:
        return ImageRef.parse(value) if isinstance(value, str) else value

    @field_validator("network", mode="before")
    @classmethod
    def _network_text(cls, value: object) -> object:
        return Network(mode=NetworkMode(value)) if isinstance(value, str) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecResult:
    """How one command ended. A time-out is a flag of its own, never an exit code."""

    exit_code: int
    """The command's own code, or 128 + n when signal n ended it."""
    stdout: bytes = b""
    """Standard output, exact bytes; head and tail only when truncated."""
    stderr: bytes = b""
    """Standard error, exact bytes; head and tail only when truncated."""
    stdout_size: int = 0
    """Bytes the command really wrote to standard output."""
    stderr_size: int = 0
    """Bytes the command really wrote to standard error."""
    stdout_truncated: bool = False
    """`stdout` lacks its middle."""
    stderr_truncated: bool = False
    """`stderr` lacks its middle."""
    timed_out: bool = False
    """The command was killed because it ran past `limit_s`."""
    limit_s: float | None = None
    """The limit that fired, seconds; None unless `timed_out`."""
    duration_s: float = 0.0
    """From start to end as the agent measured it, seconds."""

    @property
    def text(self) -> str:
        """stdout then stderr, decoded; undecodable bytes become U+FFFD."""
        return self.stdout_text + self.stderr_text

    @property
    def stdout_text(self) -> str:
        """stdout decoded as UTF-8 with replacement."""
        return self.stdout.decode("utf-8", "replace")

    @property
    def stderr_text(self) -> str:
        """stderr decoded as UTF-8 with replacement."""
        return self.stderr.decode("utf-8", "replace")

    @property
    def truncated(self) -> bool:
        """Either stream lacks its middle."""
        return self.stdout_truncated or self.stderr_truncated

    @property
    def ok(self) -> bool:
        """Exit code 0 and not timed out."""
        return self.exit_code == 0 and not self.timed_out


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """One file as a listing or stat shows it."""

    name: str
    """Base name; bytes that are not UTF-8 are kept by surrogateescape, as `os.fsdecode` does."""
    path: str
    """Absolute path inside, in the same encoding."""
    kind: Literal["file", "directory", "symlink", "other"]
    """What the entry itself is (links are not followed)."""
    size: int
    """Bytes; 0 for anything that is not a regular file."""
    mode: int
    """Permission bits."""
    modified: float
    """Seconds since the epoch."""
    link: str | None = None
    """Where a symlink points, None for anything else."""
    broken: bool = False
    """A symlink whose target does not exist, or an entry that could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEndpoint:
    """The in-sandbox agent as a program in any language reaches it (see the agent protocol page)."""

    url: str
    """`http://HOST:PORT`, or `unix:PATH` for plain HTTP/1.1 over a Unix socket; or `http(s)://HOST/PATH` of a
    service that passes calls on, and carries upgrades over WebSocket."""
    token: str = field(repr=False)
    """Bearer token, scoped to commands and files of this one sandbox; empty where a service puts it in."""
    sandbox_id: str
    """Sent with every call; the agent answers to no other."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with every call besides, such as a service's API key."""
    ca_file: str = ""
    """PEM file of authorities that https trusts besides the system's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalAddress:
    """A TCP address on the driver's side that leads to a port inside."""

    host: str
    """Always a loopback address."""
    port: int
    """TCP port."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PtySize:
    """Size of a terminal."""

    rows: int = 24
    """Lines."""
    cols: int = 80
    """Characters a line."""


class Snapshot(Record):
    """The name of a saved state of a sandbox's files; the files lie with the provider."""

    id: str
    """The provider's name for it."""
    provider: str
    """Name of the provider that can restore it: the very object that saved it, unless that one says more."""
    size: int
    """Bytes it takes on disk."""


class StandingSandbox(Record):
    """A sandbox that stands, as its provider finds it, whoever made it."""

    id: str
    """Its id."""
    spec: SandboxSpec
    """What it was created from; the content of its files may be left out."""
    created: float
    """When, seconds since the epoch by the provider's clock."""
    age_s: float | None = None
    """How long it has stood, seconds, by a clock that does not step; None: by `created`."""


class Capabilities(Record):
    """What a provider can do, as data, so that a caller asks before it relies on a thing."""

    images: frozenset[ImageKind] = frozenset()
    """Kinds of image it takes."""
    networks: frozenset[NetworkMode] = frozenset({NetworkMode.NONE})
    """Network policies it enforces."""
    isolated: bool = True
    """False: commands run on the host as they are."""
    private_paths: bool = True
    """Absolute paths such as /workspace are the sandbox's own; False: they are the host's."""
    snapshot: bool = False
    """`snapshot()` works."""
    fork: bool = False
    """`fork()` works."""
    pty: bool = False
    """`start(pty=...)` works."""
    users: bool = False
    """Commands may run as any user, not just the sandbox's own."""
    mounts: bool = False
    """Pieces of the host can be shown inside, read-only."""
    gpu: bool = False
    """GPUs can be had."""
    limits: Mapping[str, str] = Field(default_factory=dict)
    """What enforces memory, cpu, pids, disk: `cgroup-v1`, `cgroup-v2`, `rlimit`; absent: nothing does."""
