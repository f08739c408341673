"""Anthropic's models: messages go to them untouched, chat by way of their OpenAI-compatible endpoint."""

from __future__ import annotations

import os

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from orchard_core.errors import ConfigError
from orchard_core.gateway.chat.endpoint import ChatEndpoint
from orchard_core.gateway.contract import SessionContext, Upstream
from orchard_core.gateway.endpoint import Endpoint, Target
from orchard_core.gateway.openai import checked_url
from orchard_core.gateway.remote import RemoteUpstream
from orchard_core.types.model import Dialect, Price

ANTHROPIC_URL = "https://api.anthropic.com"

VERSION = "2023-06-01"
"""Of the API, for harnesses that name none."""


class AnthropicConfig(BaseModel):
    """Options of the model `anthropic`."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    model: str = Field(min_length=1)
    """The model's name; what stands after `anthropic:`."""
    base_url: str = ""
    """The server, without `/v1`; empty: ANTHROPIC_BASE_URL, else Anthropic itself."""
    api_key: SecretStr | None = None
    """The key; None: taken from the variable `api_key_env`."""
    api_key_env: str = "ANTHROPIC_API_KEY"
    """Environment variable that holds the key."""
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
    """Further headers of every request, such as `anthropic-beta`; they win over the harness's."""


class AnthropicModel:
    """Honours `orchard_core.Model`. One connection pool for each URL serves every session."""

    def __init__(self, config: AnthropicConfig) -> None:
        """Raises ConfigError for an unusable URL or a missing key."""
        self._config = config
        given = config.base_url or os.environ.get("ANTHROPIC_BASE_URL") or ANTHROPIC_URL
        root = given.rstrip("/").removesuffix("/v1")
        checked_url(root, config.model)
        key = self._key()
        own = {"x-api-key": key}
        chat = self._endpoint(f"{root}/v1/chat/completions", {"Authorization": f"Bearer {key}"}, key)
        self._upstream = RemoteUpstream(
            {
                Dialect.CHAT: ChatEndpoint(chat, "off"),
                Dialect.MESSAGES: self._endpoint(f"{root}/v1/messages", own, key),
            },
            counter=self._endpoint(f"{root}/v1/messages/count_tokens", own, key),
        )

    def _key(self) -> str:
        config = self._config
        key = config.api_key.get_secret_value() if config.api_key else os.environ.get(config.api_key_env, "")
        if not key:
            raise ConfigError(
                f"the model {config.model!r} needs a key for Anthropic",
                hint=f"export {config.api_key_env}=...",
            )
        return key

    def _endpoint(self, url: str, auth: dict[str, str], key: str) -> Endpoint:
        config = self._config
        own = {name.lower(): value.get_secret_value() for name, value in config.headers.items()}
        return Endpoint(
            Target(
                url=url,
                secrets=frozenset({key, *own.values()}),
                headers={**auth, **own},
                defaults={"anthropic-version": VERSION},
                timeout_s=config.timeout_s,
                connect_timeout_s=config.connect_timeout_s,
                idle_timeout_s=config.idle_timeout_s,
            )
        )

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
