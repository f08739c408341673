"""Options of the local provider."""

from __future__ import annotations

from orchard_core.types.base import Record


class LocalConfig(Record):
    """What the operator of this machine may choose; a task chooses by its SandboxSpec."""

    state_dir: str | None = None
    """Directory for the sandboxes' writable layers; None: ORCHARD_STATE_DIR, else the first of
    /var/tmp/orchard-UID, the user's state directory and /dev/shm/orchard-UID that can carry overlays."""
    bwrap: str | None = None
    """Path of the bubblewrap program; None: the system's when it is new enough, else the packaged one."""
    default_memory_mb: int | None = None
    """Memory limit of sandboxes whose spec names none, MiB; None: no limit."""
    default_pids: int | None = 4096
    """Process limit of sandboxes whose spec names none; applied only where the host can enforce it."""
    nested_namespaces: bool = False
    """Let programs inside make user namespaces of their own, as container tools and browsers' own
    sandboxes want; it shows them more of the kernel."""
    create_timeout_s: float = 30.0
    """A sandbox whose agent does not answer after this many seconds has failed."""
