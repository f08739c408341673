"""A gateway between a real client and a real model server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from orchard_core import Limits, Model, SessionContext
from orchard_core.gateway.openai import OpenAIConfig, OpenAIModel
from orchard_core.gateway.retry import RetryPolicy
from orchard_core.gateway.server import Gateway
from orchard_core.gateway.session import Session

from .client import Client
from .dialects import DIALECTS, Spoken
from .model_server import ModelServer

Open = Callable[..., Awaitable[tuple[Session, Client]]]


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    made = ModelServer()
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def gateway() -> AsyncIterator[Gateway]:
    async with Gateway(retry=RetryPolicy(attempts=4, base_s=0.01), max_body=8 << 20) as made:
        yield made


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as made:
        yield made


@pytest.fixture
async def connect(server: ModelServer) -> AsyncIterator[Callable[..., OpenAIModel]]:
    """Makes models that lead to the server."""
    models: list[OpenAIModel] = []

    def make(**options: Any) -> OpenAIModel:
        settings = {"model": "m", "base_url": server.url, "api_key": "vendor-secret-key", **options}
        models.append(OpenAIModel(OpenAIConfig(**settings)))
        return models[-1]

    yield make
    for model in models:
        await model.close()


@pytest.fixture
async def open_session(
    gateway: Gateway, http: aiohttp.ClientSession, connect: Callable[..., OpenAIModel]
) -> Open:
    """A session to the server (or to `model`) and a client that has its key."""

    async def make(
        model: Model | None = None, *, limits: Limits | None = None, **options: Any
    ) -> tuple[Session, Client]:
        hooks = {name: options.pop(name) for name in ("before_call", "on_call") if name in options}
        chosen = model or connect(**options)
        session = await gateway.open_session(chosen, SessionContext(), limits=limits or Limits(), **hooks)
        return session, Client(http, session.endpoint)

    return make


@pytest.fixture(params=DIALECTS, ids=lambda spoken: spoken.name)
def spoken(request: pytest.FixtureRequest) -> Spoken:
    row: Spoken = request.param
    return row


@pytest.fixture
def dial(open_session: Open, connect: Callable[..., OpenAIModel], spoken: Spoken) -> Open:
    """A session to a server of the row's dialects."""

    async def make(**options: object) -> tuple[Session, Client]:
        own = {name: options.pop(name) for name in ("limits", "on_call", "before_call") if name in options}
        return await open_session(connect(dialects=spoken.served, **options), **own)

    return make
