"""Options of the container provider."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class ContainerConfig(BaseModel):
    """What the operator of this machine may choose; a task chooses by its SandboxSpec."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    engine: str | None = None
    """Address of Docker or Podman, `unix:///PATH` or `tcp://HOST:PORT`; None: DOCKER_HOST, CONTAINER_HOST,
    else the first of the usual sockets that answers."""
    state_dir: str | None = None
    """Directory for the agents' sockets, which the engine must see at the same path; None: ORCHARD_STATE_DIR,
    else /var/tmp/orchard-UID."""
    host_image: str | None = None
    """The image, such as `python:3.12-slim`, that stands for `host` in tasks that name no image; None: such
    tasks are refused."""
    pull: Literal["missing", "always", "never"] = "missing"
    """When an image is fetched from its registry; `always` asks once for each image."""
    platform: str | None = None
    """Platform of the images, such as `linux/amd64`; None: the engine's own. The agent must run there."""
    gpus: str | None = None
    """GPUs every sandbox gets: `all`, or a device of the container device interface, `nvidia.com/gpu=0`."""
    read_only_root: bool = False
    """Nothing of the image can be written to; /tmp, /var/tmp, /run, /root and the working directory are in
    memory. There are no snapshots then."""
    runtime: str | None = None
    """Another runtime of the engine, such as `runsc` (gVisor) or `kata`."""
    default_memory_mb: int | None = None
    """Memory limit of sandboxes whose spec names none, MiB; None: no limit."""
    default_pids: int | None = 4096
    """Process limit of sandboxes whose spec names none."""
    keep_leftovers: bool = False
    """Leave what a killed driver left until its TTL has passed, for another driver to adopt; else it is
    removed before this driver makes its first sandbox."""
    shm_mb: int = 64
    """Size of /dev/shm, MiB; browsers want 1024."""
    concurrency: int = 8
    """Containers that are made, started or removed at once: more make an engine slower, not faster."""
    create_timeout_s: float = 60.0
    """A sandbox whose agent does not answer after this many seconds has failed; the pull of its image is not
    part of it."""
    pull_timeout_s: float = 1800.0
    """Longest pull or build of an image."""
