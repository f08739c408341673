"""Models behind a URL honour the HTTP upstream suite against a server that misbehaves."""

from __future__ import annotations

import pytest

from orchard_core import SessionContext, Upstream
from orchard_core.gateway.anthropic import AnthropicConfig, AnthropicModel
from orchard_core.gateway.openai import OpenAIConfig, OpenAIModel
from orchard_core.testing import HttpUpstreamSuite
from orchard_core.testing.suites.model.http_upstream import UpstreamFor


class TestOpenAIUpstream(HttpUpstreamSuite):
    """Ids are asked for, and done without when the server does not tell."""

    @pytest.fixture
    def upstream_for(self) -> UpstreamFor:
        def make(url: str, key: str) -> Upstream:
            model = OpenAIModel(OpenAIConfig.model_validate({"model": "m", "base_url": url, "api_key": key}))
            return model.upstream(SessionContext())

        return make


class TestOpenAIUpstreamWithoutIds(HttpUpstreamSuite):
    """Ids are never asked for."""

    @pytest.fixture
    def upstream_for(self) -> UpstreamFor:
        def make(url: str, key: str) -> Upstream:
            options = {"model": "m", "base_url": url, "api_key": key, "token_ids": "off"}
            return OpenAIModel(OpenAIConfig.model_validate(options)).upstream(SessionContext())

        return make


class TestAnthropicUpstream(HttpUpstreamSuite):
    """Chat by way of the compatible endpoint, at the same server as messages."""

    @pytest.fixture
    def upstream_for(self) -> UpstreamFor:
        def make(url: str, key: str) -> Upstream:
            options = {"model": "m", "base_url": url, "api_key": key}
            return AnthropicModel(AnthropicConfig.model_validate(options)).upstream(SessionContext())

        return make
