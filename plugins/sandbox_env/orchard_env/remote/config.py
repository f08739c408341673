"""What a user sets of the provider `remote`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field

from orchard_core import ConfigError, Record
from orchard_env.client.address import ServiceAddress


class RemoteConfig(Record):
    """Which service, and how to reach it. The API key is never an option: it would stand in the shell's
    history, in the process list and in the run's configuration."""

    url: str | None = None
    """`http(s)://HOST[:PORT]` of the service; None: SANDBOX_BASE_URL."""
    key_env: str = "SANDBOX_API_KEY"
    """Name of the environment variable that holds the API key."""
    key_file: str | None = None
    """A file that holds the API key; it counts before the environment."""
    ca_file: str = ""
    """PEM file of authorities that https trusts besides the system's."""
    direct: Literal["auto", "never", "only"] = "auto"
    """Whether calls go straight to the sandbox: where it can be reached and else through the service, always
    through the service, or never through it."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    """Put on every sandbox, and what `standing` lists: for telling runs apart that share a key."""
    create_s: float = Field(default=600.0, gt=0)
    """A sandbox that is not ready after so many seconds has failed."""
    heartbeat: bool = True
    """Keep sandboxes alive by heartbeats, so that the service destroys those of a driver that died; without,
    they live until their TTL."""

    def address(self) -> ServiceAddress:
        """The service and the key. Raises ConfigError."""
        url = self.url or os.environ.get("SANDBOX_BASE_URL")
        if not url:
            raise ConfigError(
                "the provider remote is not told which service to use",
                hint="set SANDBOX_BASE_URL, or give its option url",
            )
        return ServiceAddress(url=url.rstrip("/"), api_key=self._key(), ca_file=self.ca_file)

    def _key(self) -> str:
        if self.key_file is None:
            return os.environ.get(self.key_env, "").strip()
        try:
            return Path(self.key_file).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"the API key cannot be read from {self.key_file}: {error}",
                hint="give a file that holds nothing but the key",
            ) from error
