"""Models behind an OpenAI-compatible URL: OpenAI itself, vLLM, SGLang, Ollama, and any other."""

from __future__ import annotations

import os
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from orchard_core.errors import ConfigError
from orchard_core.gateway.chat.endpoint import ChatEndpoint
from orchard_core.gateway.contract import SessionContext, Upstream
from orchard_core.gateway.endpoint import Endpoint, Target
from orchard_core.gateway.remote import RemoteUpstream
from orchard_core.types.model import Dialect, Price

OPENAI_URL = "https://api.openai.com/v1"


class OpenAIConfig(BaseModel):
    """Options of the model `openai`."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    model: str = Field(min_length=1)
    """The model's name at the server; what stands after `openai:`."""
    base_url: str = ""
    """Root of the API, ending in `/v1`; empty: OPENAI_BASE_URL, else OpenAI itself."""
    api_key: SecretStr | None = None
    """The server's key; None: taken from the variable `api_key_env`."""
    api_key_env: str = "OPENAI_API_KEY"
    """Environment variable that holds the key; a server that needs none works without."""
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
    dialects: frozenset[Dialect] | None = None
    """Wire protocols the server speaks at `/chat/completions`, `/responses`, `/messages`: requests in them go
    there untouched, others are put into chat. None: chat, and responses too for OpenAI itself."""
    token_ids: Literal["auto", "on", "off"] = "auto"  # noqa: S105 - not a password
    """Ask for token ids and log-probabilities: `auto` goes without when the server refuses, `on` fails."""
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    """Further headers of every request; their values are kept secret."""


class OpenAIModel:
    """Honours `orchard_core.Model`. One connection pool serves every session."""

    def __init__(self, config: OpenAIConfig) -> None:
        """Raises ConfigError for an unusable URL or a missing key."""
        self._config = config
        base = (config.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL).rstrip("/")
        parts = checked_url(base, config.model)
        key = self._key(parts.hostname or "")
        spoken = config.dialects or _usual(parts.hostname or "")
        endpoints = {dialect: self._endpoint(f"{base}{_PATHS[dialect]}", dialect, key) for dialect in spoken}
        counter = self._plain(f"{base}{_PATHS[Dialect.MESSAGES]}/count_tokens", Dialect.MESSAGES, key)
        self._upstream = RemoteUpstream(endpoints, counter if Dialect.MESSAGES in spoken else None)

    def _endpoint(self, url: str, dialect: Dialect, key: str) -> ChatEndpoint | Endpoint:
        plain = self._plain(url, dialect, key)
        return ChatEndpoint(plain, self._config.token_ids) if dialect is Dialect.CHAT else plain

    def _plain(self, url: str, dialect: Dialect, key: str) -> Endpoint:
        config = self._config
        own = {name: value.get_secret_value() for name, value in config.headers.items()}
        bearer = {"Authorization": f"Bearer {key}"} if key else {}
        # Servers of Anthropic's dialect look for the key there, too.
        extra = {"x-api-key": key} if key and dialect is Dialect.MESSAGES else {}
        return Endpoint(
            Target(
                url=url,
                secrets=frozenset({key, *own.values()}),
                headers={**bearer, **extra, **own},
                timeout_s=config.timeout_s,
                connect_timeout_s=config.connect_timeout_s,
                idle_timeout_s=config.idle_timeout_s,
            )
        )

    def _key(self, host: str) -> str:
        config = self._config
        given = (
            config.api_key.get_secret_value() if config.api_key else os.environ.get(config.api_key_env, "")
        )
        if not given and host == "api.openai.com":
            raise ConfigError(
                f"the model {config.model!r} needs a key for {host}",
                hint=f"export {config.api_key_env}=..., or set base_url to a server of your own",
            )
        return given

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


_PATHS = {
    Dialect.CHAT: "/chat/completions",
    Dialect.RESPONSES: "/responses",
    Dialect.MESSAGES: "/messages",
}


def _usual(host: str) -> frozenset[Dialect]:
    """What a server speaks of which nothing is said."""
    more = {Dialect.RESPONSES} if host == "api.openai.com" else set()
    return frozenset({Dialect.CHAT, *more})


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
