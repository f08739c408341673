"""The LiteLLM package, made quiet."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """What is used of it."""

    complete: Callable[..., Any]
    """Awaited: a chat completion, or an iterator of its chunks."""
    provider: Callable[..., tuple[str, str, str | None, str | None]]
    """A model's bare name and its vendor, among other things. Raises one of `errors` for an unknown one."""
    missing: Callable[[str], Mapping[str, Any]]
    """Variables that a model needs, under `missing_keys`."""
    prices: Mapping[str, Mapping[str, Any]]
    """Prices and limits by model."""
    errors: tuple[type[Exception], ...]
    """Base classes of what it raises."""


def load() -> Library:
    """Import it. Left alone it fetches price lists from the network, reads a `.env` file into the
    environment, and writes advice to standard output."""
    os.environ.setdefault("LITELLM_OFFLINE_MODE", "true")  # it looks again at some calls
    with _variable("LITELLM_MODE", "PRODUCTION"):
        litellm: Any = import_module("litellm")
    if "LITELLM_LOG" not in os.environ:
        for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
    litellm.suppress_debug_info = True
    return Library(
        complete=litellm.acompletion,
        provider=litellm.get_llm_provider,
        missing=litellm.validate_environment,
        prices=litellm.model_cost,
        errors=(import_module("openai").OpenAIError,),  # LiteLLM's own classes derive from it
    )


@contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
