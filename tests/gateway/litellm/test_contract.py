"""The real LiteLLM package, held to the suites of models and upstreams against a real server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from orchard_core import Model, SessionContext, Upstream
from orchard_core.gateway.litellm.config import LiteLLMConfig
from orchard_core.gateway.litellm.model import LiteLLMModel
from orchard_core.testing.suites.model.http_upstream import HttpUpstreamSuite, UpstreamFor
from orchard_core.testing.suites.model.model import ModelSuite
from orchard_core.testing.suites.model.server import model_server

from . import needs_litellm

pytestmark = needs_litellm


class TestUpstream(HttpUpstreamSuite):
    """As any client of a chat server."""

    @pytest.fixture
    def upstream_for(self) -> UpstreamFor:
        """See HttpUpstreamSuite."""

        def make(url: str, key: str) -> Upstream:
            config = LiteLLMConfig.model_validate({"model": "openai/m", "base_url": url, "api_key": key})
            return LiteLLMModel(config).upstream(SessionContext())

        return make


class TestModel(ModelSuite):
    """As any model."""

    @pytest_asyncio.fixture
    async def model(self) -> AsyncIterator[Model]:
        """See ModelSuite."""
        async with model_server() as server:
            yield LiteLLMModel(
                LiteLLMConfig.model_validate({"model": "openai/m", "base_url": server.url, "api_key": "k"})
            )
