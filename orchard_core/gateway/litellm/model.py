"""The model `litellm`."""

from __future__ import annotations

import os

from orchard_core.errors import ConfigError
from orchard_core.gateway.contract import SessionContext, Upstream
from orchard_core.gateway.litellm.config import LiteLLMConfig
from orchard_core.gateway.litellm.library import Library, load
from orchard_core.gateway.litellm.prices import price_of
from orchard_core.gateway.litellm.upstream import LiteLLMUpstream, Vendor
from orchard_core.gateway.openai_faults import Redactor
from orchard_core.types.model import Price

_SECRET = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_CREDENTIALS")
"""Endings of variables that hold secrets; LiteLLM takes keys from them."""


class LiteLLMModel:
    """Honours `orchard_core.Model`."""

    def __init__(self, config: LiteLLMConfig) -> None:
        """Raises ConfigError for an unknown vendor or a missing key."""
        self._config = config
        library = load()
        bare, vendor = _vendor(library, config)
        _check_key(library, config)
        own_server = vendor == "openai" and config.base_url
        known = None if own_server else price_of(library.prices, config.model, vendor, bare)
        self._price = config.price or known
        self._upstream = LiteLLMUpstream(library, _target(config, vendor), Redactor(_secrets(config)))

    @property
    def name(self) -> str:
        """Vendor and model."""
        return self._config.model

    @property
    def price(self) -> Price | None:
        """As configured, else from LiteLLM's table, else unknown."""
        return self._price

    @property
    def concurrency(self) -> int | None:
        """As configured."""
        return self._config.concurrency

    def upstream(self, context: SessionContext) -> Upstream:
        """The same for every session."""
        return self._upstream

    async def close(self) -> None:
        """Give back what it holds."""
        await self._upstream.close()


def _vendor(library: Library, config: LiteLLMConfig) -> tuple[str, str]:
    try:
        bare, vendor, _, _ = library.provider(config.model, api_base=config.base_url or None)
    except library.errors:
        raise ConfigError(
            f"LiteLLM knows no vendor for the model {config.model!r}",
            hint="write the vendor before the model, such as litellm:anthropic/claude-sonnet-4-5",
        ) from None
    return bare, vendor


def _check_key(library: Library, config: LiteLLMConfig) -> None:
    """A missing key is told before the first rollout, not by each of them."""
    if config.api_key is not None or config.base_url:
        return
    missing = library.missing(config.model).get("missing_keys") or []
    if missing:
        raise ConfigError(
            f"the model {config.model!r} needs a key of its vendor",
            hint=f"export {' and '.join(f'{name}=...' for name in missing)}",
        )


def _target(config: LiteLLMConfig, vendor: str) -> Vendor:
    fixed: dict[str, object] = {"drop_params": config.drop_unsupported}
    if config.api_key is not None:
        fixed["api_key"] = config.api_key.get_secret_value()
    if config.base_url:
        fixed["api_base"] = config.base_url
    if config.headers:
        fixed["extra_headers"] = {name: value.get_secret_value() for name, value in config.headers.items()}
    where = f"{vendor} ({config.base_url})" if config.base_url else vendor
    return Vendor(model=config.model, where=where, fixed=fixed, timeout_s=config.timeout_s)


def _secrets(config: LiteLLMConfig) -> list[str]:
    """Values that no error message may show."""
    given = [value.get_secret_value() for value in config.headers.values()]
    if config.api_key is not None:
        given.append(config.api_key.get_secret_value())
    return given + [value for name, value in os.environ.items() if name.endswith(_SECRET) and len(value) >= 8]
