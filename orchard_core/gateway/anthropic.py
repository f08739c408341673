"""Anthropic's models: messages go to them untouched, chat by way of their OpenAI-compatible endpoint."""

from __future__ import annotations

import os

from orchard_core.errors import ConfigError
from orchard_core.gateway.chat.endpoint import ChatEndpoint
from orchard_core.gateway.contract import Upstream
from orchard_core.gateway.remote import RemoteUpstream
from orchard_core.gateway.remote_model import RemoteConfig, RemoteModel, checked_url
from orchard_core.types.model import Dialect

ANTHROPIC_URL = "https://api.anthropic.com"

VERSION = "2023-06-01"
"""Of the API, for harnesses that name none."""


class AnthropicConfig(RemoteConfig):
    """Options of the model `anthropic`."""

    base_url: str = ""
    """The server, without `/v1`; empty: ANTHROPIC_BASE_URL, else Anthropic itself."""
    api_key_env: str = "ANTHROPIC_API_KEY"
    """Environment variable that holds the key."""


class AnthropicModel(RemoteModel):
    """Any server of Anthropic's dialect."""

    def __init__(self, config: AnthropicConfig) -> None:
        """Raises ConfigError for an unusable URL or a missing key."""
        super().__init__(config, _upstream(config))


def _upstream(config: AnthropicConfig) -> Upstream:
    given = config.base_url or os.environ.get("ANTHROPIC_BASE_URL") or ANTHROPIC_URL
    root = given.rstrip("/").removesuffix("/v1")
    checked_url(root, config.model)
    key = config.key(config.api_key_env)
    if not key:
        raise ConfigError(
            f"the model {config.model!r} needs a key for Anthropic", hint=f"export {config.api_key_env}=..."
        )
    own, version = {"x-api-key": key}, {"anthropic-version": VERSION}
    bearer = {"Authorization": f"Bearer {key}"}
    chat = config.endpoint(f"{root}/v1/chat/completions", key, bearer, defaults=version)
    messages = config.endpoint(f"{root}/v1/messages", key, own, defaults=version)
    counter = config.endpoint(f"{root}/v1/messages/count_tokens", key, own, defaults=version)
    return RemoteUpstream(
        {Dialect.CHAT: ChatEndpoint(chat, "off"), Dialect.MESSAGES: messages}, counter=counter
    )
