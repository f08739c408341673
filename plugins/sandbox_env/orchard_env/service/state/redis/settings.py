"""How to reach a Redis server."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import Field, SecretStr

from orchard_core import ConfigError, Record

URL_VARIABLE = "ORCHARD_ENV_REDIS_URL"
PASSWORD_VARIABLE = "ORCHARD_ENV_REDIS_PASSWORD"  # noqa: S105 - the name of a variable


class RedisSettings(Record):
    """A server, and how long it may take."""

    url: SecretStr
    """`redis://[user:password@]host:port/db`, `rediss://` with TLS, or `unix://path`."""
    password: SecretStr | None = None
    """The password, when it is not in the URL."""
    ca_file: Path | None = None
    """Whom to trust with `rediss://`; None: the system's authorities."""
    prefix: str = Field(default="orchard", pattern=r"^[A-Za-z0-9_.-]+$")
    """Begins every key, so that services may share a server."""
    timeout_s: float = Field(default=1.0, gt=0)
    """A call without an answer after this long counts as the server's death, seconds."""
    connections: int = Field(default=16, ge=1)
    """Connections at once."""

    @classmethod
    def of(cls, url: str | None = None, *, password_file: Path | None = None) -> RedisSettings | None:
        """From a flag, else from the environment; None when neither names a server. A password belongs into a
        file or the environment, where no list of processes shows it. Raises ConfigError."""
        where = url or os.environ.get(URL_VARIABLE, "")
        if not where:
            return None
        if not where.startswith(("redis://", "rediss://", "unix://")):
            raise ConfigError(
                f"the Redis URL begins with {where.partition(':')[0]!r}",
                hint="write redis://HOST:PORT/0, rediss://HOST:PORT/0 or unix://PATH",
            )
        secret = _read(password_file) if password_file else os.environ.get(PASSWORD_VARIABLE)
        return cls(url=SecretStr(where), password=SecretStr(secret) if secret else None)


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError as error:
        raise ConfigError(
            f"the Redis password file {path} cannot be read: {error.strerror}",
            hint="give a file that holds the password alone",
        ) from error
