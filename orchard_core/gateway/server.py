"""The gateway: one loopback listener between every harness and every model."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Self

from orchard_core.errors import ConfigError
from orchard_core.gateway.app import GatewayApp, digest
from orchard_core.gateway.contract import BeforeCall, Model, SessionContext
from orchard_core.gateway.faults import KEY_PREFIX
from orchard_core.gateway.listener import Listener
from orchard_core.gateway.retry import RetryPolicy
from orchard_core.gateway.session import OnCall, Service, Session
from orchard_core.gateway.slots import Slots
from orchard_core.gateway.tools.served import ServedTools
from orchard_core.tasks.contract import Tool
from orchard_core.types.harness import Limits
from orchard_core.types.model import Dialect, ModelEndpoint
from orchard_core.types.sandbox import LocalAddress


@dataclass(slots=True, kw_only=True)
class _Shared:
    """What all sessions of one model share."""

    model: Model
    """Held, so that its id stays its own."""
    slots: Slots
    """Its calls in flight."""
    sessions: int = 0
    """How many are open."""


class Gateway:
    """Opens recorded sessions. Use it as an async context manager; leaving it ends every session."""

    def __init__(
        self,
        *,
        retry: RetryPolicy | None = None,
        call_timeout_s: float = 600.0,
        max_body: int = 32 << 20,
        stall_s: float = 300.0,
    ) -> None:
        """A client that takes nothing of its answer for `stall_s` seconds is cut off."""
        self._retry = retry or RetryPolicy()
        self._call_timeout_s = call_timeout_s
        self._app = GatewayApp(max_body=max_body, stall_s=stall_s)
        self._slots: dict[int, _Shared] = {}
        self._stack = AsyncExitStack()
        self._address: LocalAddress | None = None

    @property
    def address(self) -> LocalAddress:
        """Where it listens. Raises ConfigError before it is entered."""
        if self._address is None:
            raise ConfigError(
                "the gateway is not running", hint="use it as `async with Gateway() as gateway:`"
            )
        return self._address

    async def __aenter__(self) -> Self:
        self._address = await self._stack.enter_async_context(Listener(self._app))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for session in list(self._app.sessions.values()):
            await session.close()
        await self._stack.aclose()
        self._address = None

    async def open_session(
        self,
        model: Model,
        context: SessionContext,
        *,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        before_call: BeforeCall | None = None,
        on_call: OnCall | None = None,
        tools: Sequence[Tool] = (),
    ) -> Session:
        """A new key for one rollout and one model, which serves `tools` too. Raises ConfigError for a model
        that speaks no dialect of ours."""
        upstream = model.upstream(context)
        if not upstream.dialects & frozenset(Dialect):
            raise ConfigError(
                f"the model {model.name!r} speaks no dialect that the gateway knows",
                hint=f"its upstream's `dialects` must name one of {', '.join(Dialect)}",
            )
        key = KEY_PREFIX + secrets.token_urlsafe(32)
        service = Service(
            upstream=upstream,
            slots=self._slots_of(model).slots,
            price=model.price,
            retry=self._retry,
            call_timeout_s=self._call_timeout_s,
        )
        session = Session(
            id=secrets.token_hex(8),
            endpoint=self._endpoint(key, model),
            service=service,
            limits=limits,
            before_call=before_call,
            on_call=on_call,
            tools=ServedTools(tools),
            revoke=partial(self._revoke, digest(key)),
            release=partial(self._release, model),
        )
        self._slots_of(model).sessions += 1
        self._app.sessions[digest(key)] = session
        return session

    def _revoke(self, key: bytes) -> None:
        self._app.sessions.pop(key, None)

    def _endpoint(self, key: str, model: Model) -> ModelEndpoint:
        address = self.address
        return ModelEndpoint(
            base_url=f"http://{address.host}:{address.port}/v1", api_key=key, model=model.name
        )

    def _slots_of(self, model: Model) -> _Shared:
        """The bound is the model's, over all its sessions."""
        held = self._slots.get(id(model))
        if held is None:
            held = self._slots[id(model)] = _Shared(model=model, slots=Slots(model.concurrency))
        return held

    def _release(self, model: Model) -> None:
        """A session is over; with the last one goes what is known of its model."""
        held = self._slots[id(model)]
        held.sessions -= 1
        if not held.sessions:
            del self._slots[id(model)]
