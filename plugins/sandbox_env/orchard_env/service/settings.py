"""What an operator sets of the service."""

from __future__ import annotations

from pydantic import Field

from orchard_core import Record


class ServiceSettings(Record):
    """Bounds and habits of one service process."""

    namespace: str = "default"
    """What v1 answers call `namespace`: the cluster's, or a name for the machine."""
    image_fallback: bool = False
    """Serve an image that the provider cannot give from the host's own files, told in the answer's labels;
    otherwise such a request is refused."""
    rootfs_allowed: tuple[str, ...] = ()
    """Directories below which `rootfs:` images of clients may lie; none by default."""
    allowed_hosts: tuple[str, ...] = ()
    """Names and addresses that requests may call the service by; none: any. A service without keys on a
    loopback address allows loopback names only, so that no web page in a browser there can speak to it."""
    body_mb: int = Field(default=64, ge=1)
    """Largest JSON body, MiB: a base64 file and a patch travel in one. Streamed files have no such bound."""
    bodies_mb: int = Field(default=512, ge=1)
    """JSON bodies of all requests under way together, MiB, of which one tenant may hold half; twice `body_mb`
    at least. What goes beyond is answered 503."""
    file_mb: int = Field(default=32, ge=1)
    """Largest file that one v1 answer carries as base64, MiB."""
    body_s: float = Field(default=120.0, gt=0)
    """A JSON body that is not whole after so many seconds is given up."""
    wait_s: float = Field(default=300.0, gt=0)
    """Longest wait on the server that a client can ask for, seconds."""
    create_s: float = Field(default=600.0, gt=0)
    """Time to readiness of a sandbox whose request names none, seconds."""
    ttl_s: float = Field(default=4 * 3600.0, gt=0)
    """Life span of a sandbox whose request names none, seconds."""
    rights_s: float = Field(default=2.0, gt=0)
    """So often it is looked whether the keys of requests and sockets under way are still good, seconds."""
    heartbeat_s: float = Field(default=120.0, gt=0)
    """A sandbox that ever sent a heartbeat is destroyed when none came for so long, seconds."""
    drain_s: float = Field(default=30.0, ge=0)
    """How long a service that is told to end waits for the requests it has, seconds."""
    max_sandboxes: int = Field(default=0, ge=0)
    """Sandboxes at once, of all tenants; 0: no bound of ours."""
    connections: int = Field(default=0, ge=0)
    """Clients that may be connected at once, of which one tenant may hold half; 0: half of the files that the
    process may open, 16384 at most. One too many ends the connection that has been idle longest."""
    output_mb: int = Field(default=16, ge=1)
    """Bytes of each output that a v1 job carries, MiB, half of it the head, half the tail."""
    jobs_mb: int = Field(default=64, ge=1)
    """Memory for v1 jobs that have ended, MiB: their results outlive their sandboxes within it."""
