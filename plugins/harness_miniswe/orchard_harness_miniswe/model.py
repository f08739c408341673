"""The calls of mini-swe-agent, made through the gateway; litellm is never imported.

How answers are read and observations written is the stock code's: its OpenRouter models speak plain chat
completions, and only where they send a request is ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orchard_harness_miniswe.stock import BASH_TOOL, openrouter_model, openrouter_textbased_model

Json = dict[str, Any]
Ask = Callable[[Json], Json]
"""Sends a request's body and returns the answer's. Raises ModelError."""


class _ThroughGateway:
    """What both have in common."""

    abort_exceptions: Any = (BaseException,)
    """What is not tried again: the gateway has done that."""
    fields: Json = {}  # noqa: RUF012 - never changed
    """What every request carries."""
    config_class: Any

    def __init__(self, ask: Ask, **config: Any) -> None:
        self.ask = ask
        self.config = self.config_class(**config)

    def _query(self, messages: list[Json], **kwargs: Any) -> Json:
        said = {"model": self.config.model_name, "messages": messages, **self.fields}
        return self.ask(said | self.config.model_kwargs | kwargs)

    def _calculate_cost(self, response: Json) -> dict[str, float]:
        """US dollars where the server tells them; the gateway has its own account either way."""
        usage = response.get("usage")
        cost = usage.get("cost") if isinstance(usage, dict) else None
        return {"cost": float(cost) if isinstance(cost, (int, float)) else 0.0}


class ToolModel(_ThroughGateway, openrouter_model.OpenRouterModel):
    """Commands travel as calls of the tool `bash`."""

    fields: Json = {"tools": [BASH_TOOL]}  # noqa: RUF012 - never changed
    config_class = openrouter_model.OpenRouterModelConfig


class TextModel(_ThroughGateway, openrouter_textbased_model.OpenRouterTextbasedModel):
    """Commands stand in the answer's text, where `action_regex` finds them."""

    config_class = openrouter_textbased_model.OpenRouterTextbasedModelConfig
