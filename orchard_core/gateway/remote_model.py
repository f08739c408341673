"""What models behind a URL share: options, connections, and what is known of the model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from orchard_core.errors import ConfigError
from orchard_core.gateway.contract import SessionContext, Upstream
from orchard_core.gateway.endpoint import Endpoint, Target
from orchard_core.types.model import Price


class RemoteConfig(BaseModel):
    """Options of every model behind a URL."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    model: str = Field(min_length=1)
    """The model's name at the server; what stands after the colon."""
    api_key: SecretStr | None = None
    """The server's key; None: taken from the variable `api_key_env`."""
    price: Price | None = None
    """Dollars per million tokens; None: unknown, and so is every cost."""
    concurrency: int | None = Field(default=None, ge=1)
    """Calls in flight at most, over all rollouts; None: as many as the server bears."""
    timeout_s: float = Field(default=600.0, gt=0)
    """Time for a whole answer, seconds."""
    connect_timeout_s: float = Field(default=15.0, gt=0)
    """Time to reach the server, seconds."""
    idle_timeout_s: float = Field(default=300.0, gt=0)
    """A streamed answer may pause so long, seconds."""
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    """Further headers of every request, which win over the harness's; their values are kept secret."""

    def key(self, variable: str) -> str:
        """The key, from that environment variable unless one is given; empty when there is none."""
        return self.api_key.get_secret_value() if self.api_key else os.environ.get(variable, "")

    def endpoint(
        self, url: str, key: str, auth: Mapping[str, str], *, defaults: Mapping[str, str] | None = None
    ) -> Endpoint:
        """One URL; `auth` are the headers that carry the key, `defaults` those a harness may replace."""
        own = {name.lower(): value.get_secret_value() for name, value in self.headers.items()}
        return Endpoint(
            Target(
                url=url,
                secrets=frozenset({key, *own.values()}),
                headers={**{name.lower(): value for name, value in auth.items()}, **own},
                defaults=defaults or {},
                timeout_s=self.timeout_s,
                connect_timeout_s=self.connect_timeout_s,
                idle_timeout_s=self.idle_timeout_s,
            )
        )


class RemoteModel:
    """Honours `orchard_core.Model`. One connection pool for each URL serves every session."""

    def __init__(self, config: RemoteConfig, upstream: Upstream) -> None:
        self._config = config
        self._upstream = upstream

    @property
    def name(self) -> str:
        """The model's name at the server."""
        return self._config.model

    @property
    def price(self) -> Price | None:
        """As configured."""
        return self._config.price

    @property
    def concurrency(self) -> int | None:
        """As configured."""
        return self._config.concurrency

    def upstream(self, context: SessionContext) -> Upstream:
        """The same for every session."""
        return self._upstream

    async def close(self) -> None:
        """Close the connections."""
        await self._upstream.close()


def checked_url(base: str, model: str) -> SplitResult:
    """The parts of a server's URL. Raises ConfigError for one that is not http(s)."""
    parts = urlsplit(base)
    if not _has_port(parts) or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"the base URL {base!r} of the model {model!r} is not an http(s) URL",
            hint="such as http://127.0.0.1:8000/v1",
        )
    return parts


def _has_port(parts: SplitResult) -> bool:
    """Whether the port is left out or one that can be."""
    try:
        return parts.port != 0
    except ValueError:
        return False
