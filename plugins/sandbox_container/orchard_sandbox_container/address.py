"""Where Docker or Podman listens."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from orchard_core import ConfigError

VARIABLES = ("DOCKER_HOST", "CONTAINER_HOST")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineAddress:
    """One place where an engine may answer."""

    socket: str = ""
    """Path of a Unix socket; empty for TCP."""
    url: str = ""
    """`http://HOST:PORT` for TCP, a stand-in for a socket."""

    def __str__(self) -> str:
        return f"unix://{self.socket}" if self.socket else self.url.replace("http", "tcp", 1)

    @classmethod
    def parse(cls, text: str) -> EngineAddress:
        """Read `unix:///PATH`, a path or `tcp://HOST:PORT`. Raises ConfigError for anything else."""
        scheme, found, rest = text.partition("://")
        if not found and text.startswith("/"):
            return cls(socket=text, url="http://engine")
        if scheme == "unix" and rest.startswith("/"):
            return cls(socket=rest, url="http://engine")
        if scheme in ("tcp", "http") and rest:
            return cls(url=f"http://{rest.rstrip('/')}")
        raise ConfigError(
            f"the engine address {text!r} is not understood",
            hint="write unix:///run/podman/podman.sock or tcp://127.0.0.1:2375; for an engine behind SSH, "
            "forward its socket: ssh -L /tmp/engine.sock:/run/docker.sock HOST",
        )


def candidates(chosen: str | None, environment: Mapping[str, str] | None = None) -> list[EngineAddress]:
    """Places to try, best first: the chosen one alone, that of the environment alone, else the usual sockets
    that exist: Docker's, then Podman's, of this user before root's. Raises ConfigError."""
    environment = os.environ if environment is None else environment
    named = chosen or next((environment[name] for name in VARIABLES if environment.get(name)), None)
    if named:
        return [EngineAddress.parse(named)]
    return [EngineAddress.parse(path) for path in usual_sockets(environment) if Path(path).is_socket()]


def usual_sockets(environment: Mapping[str, str]) -> list[str]:
    """Where engines listen when nobody says otherwise."""
    runtime = environment.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}"
    home = environment.get("HOME") or "/nonexistent"
    return [
        f"{runtime}/docker.sock",
        f"{home}/.docker/run/docker.sock",
        "/var/run/docker.sock",
        f"{runtime}/podman/podman.sock",
        "/run/podman/podman.sock",
    ]
