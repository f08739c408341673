"""Where a service is, and with what key it is asked."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from ssl import SSLContext, SSLError, create_default_context
from urllib.parse import urlsplit

from orchard_core import ConfigError

DEFAULT_URL = "http://localhost:8000"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAddress:
    """One service as one caller sees it."""

    url: str
    """`http(s)://HOST[:PORT][/PATH]`, without a slash at its end."""
    api_key: str = field(default="", repr=False)
    """Sent as X-API-Key; empty for a service that asks for none."""
    ca_file: str = ""
    """PEM file of authorities that https trusts besides the system's."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
            raise ConfigError(
                f"{self.url!r} is no address of a sandbox service", hint="give http(s)://HOST[:PORT]"
            )

    @property
    def headers(self) -> dict[str, str]:
        """What every request carries."""
        return {"X-API-Key": self.api_key} if self.api_key else {}

    def tls(self) -> SSLContext | None:
        """What https trusts; None for http. Raises ConfigError."""
        if not self.url.startswith("https:"):
            return None
        context = create_default_context()
        if self.ca_file:
            try:
                context.load_verify_locations(self.ca_file)
            except (OSError, SSLError) as error:
                raise ConfigError(
                    f"no certificate authorities can be read from {self.ca_file}: {error}",
                    hint="give a PEM file of the authority that signed the service's certificate",
                ) from error
        return context


def address_of(base_url: str | None, api_key: str | None, ca_file: str | None = None) -> ServiceAddress:
    """What was given, or what SANDBOX_BASE_URL, SANDBOX_API_KEY and SANDBOX_CA_FILE say, or this machine.
    Raises ConfigError."""
    url = base_url or os.environ.get("SANDBOX_BASE_URL") or DEFAULT_URL
    key = api_key or os.environ.get("SANDBOX_API_KEY") or ""
    trusted = ca_file or os.environ.get("SANDBOX_CA_FILE") or ""
    return ServiceAddress(url=url.rstrip("/"), api_key=key.strip(), ca_file=trusted)


def prefix_of(prefix: str | None) -> str:
    """What the ids of new sandboxes begin with: given, or SANDBOX_PREFIX, or nothing."""
    return prefix or os.environ.get("SANDBOX_PREFIX") or ""
