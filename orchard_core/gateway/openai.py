"""Models behind an OpenAI-compatible URL: OpenAI itself, vLLM, SGLang, Ollama, and any other."""

from __future__ import annotations

import os
from typing import Literal

from orchard_core.errors import ConfigError
from orchard_core.gateway.chat.endpoint import ChatEndpoint
from orchard_core.gateway.contract import Upstream
from orchard_core.gateway.endpoint import Endpoint
from orchard_core.gateway.remote import RemoteUpstream
from orchard_core.gateway.remote_model import RemoteConfig, RemoteModel, checked_url
from orchard_core.types.model import Dialect

OPENAI_URL = "https://api.openai.com/v1"


class OpenAIConfig(RemoteConfig):
    """Options of the model `openai`."""

    base_url: str = ""
    """Root of the API, ending in `/v1`; empty: OPENAI_BASE_URL, else OpenAI itself."""
    api_key_env: str = "OPENAI_API_KEY"
    """Environment variable that holds the key; a server that needs none works without."""
    dialects: frozenset[Dialect] | None = None
    """Wire protocols the server speaks at `/chat/completions`, `/responses`, `/messages`: requests in them go
    there untouched, others are put into chat. None: chat, and responses too for OpenAI itself."""
    token_ids: Literal["auto", "on", "off"] = "auto"  # noqa: S105 - not a password
    """Ask for token ids and log-probabilities: `auto` goes without when the server refuses, `on` fails."""


class OpenAIModel(RemoteModel):
    """Any server of OpenAI's dialects."""

    def __init__(self, config: OpenAIConfig) -> None:
        """Raises ConfigError for an unusable URL or a missing key."""
        super().__init__(config, _upstream(config))


def _upstream(config: OpenAIConfig) -> Upstream:
    base = (config.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL).rstrip("/")
    host = checked_url(base, config.model).hostname or ""
    key = _key(config, host)
    spoken = config.dialects or _usual(host)
    plain = {dialect: config.endpoint(base + _PATHS[dialect], key, _auth(dialect, key)) for dialect in spoken}
    endpoints: dict[Dialect, ChatEndpoint | Endpoint] = dict(plain)
    if Dialect.CHAT in plain:
        endpoints[Dialect.CHAT] = ChatEndpoint(plain[Dialect.CHAT], config.token_ids)
    counter = None
    if Dialect.MESSAGES in spoken:
        auth = _auth(Dialect.MESSAGES, key)
        counter = config.endpoint(f"{base}{_PATHS[Dialect.MESSAGES]}/count_tokens", key, auth)
    return RemoteUpstream(endpoints, counter)


def _auth(dialect: Dialect, key: str) -> dict[str, str]:
    if not key:
        return {}
    # Servers of Anthropic's dialect look for the key at a place of its own, too.
    own = {"x-api-key": key} if dialect is Dialect.MESSAGES else {}
    return {"Authorization": f"Bearer {key}", **own}


def _key(config: OpenAIConfig, host: str) -> str:
    given = config.key(config.api_key_env)
    if not given and host == "api.openai.com":
        raise ConfigError(
            f"the model {config.model!r} needs a key for {host}",
            hint=f"export {config.api_key_env}=..., or set base_url to a server of your own",
        )
    return given


_PATHS = {
    Dialect.CHAT: "/chat/completions",
    Dialect.RESPONSES: "/responses",
    Dialect.MESSAGES: "/messages",
}


def _usual(host: str) -> frozenset[Dialect]:
    """What a server speaks of which nothing is said."""
    more = {Dialect.RESPONSES} if host == "api.openai.com" else set()
    return frozenset({Dialect.CHAT, *more})
