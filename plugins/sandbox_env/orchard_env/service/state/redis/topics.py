"""Events between replicas by Redis' publish and subscribe."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from orchard_env.service.state.redis.link import RedisLink

_QUIET_S = 5.0
"""After so long without a message the server is asked whether it is still there."""
_AGAIN_S = 0.2


class RedisTopics:
    """As Topics."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link

    async def publish(self, topic: str, message: bytes) -> None:
        """As Topics."""
        await self._link.call("PUBLISH", self._link.key("topic", topic), message)

    async def listen(self, topic: str) -> AsyncGenerator[bytes | None, None]:
        """As Topics."""
        from redis.exceptions import RedisError

        while True:
            try:
                async with (
                    self._link.subscriber() as subscriber,
                    aclosing(self._heard(subscriber, topic)) as heard,
                ):
                    async for message in heard:
                        yield message
            except (RedisError, OSError, TimeoutError):
                await asyncio.sleep(_AGAIN_S)

    async def _heard(self, subscriber: Any, topic: str) -> AsyncGenerator[bytes | None, None]:
        """None once the server has confirmed the subscription, then each message; raises when it is gone."""
        await subscriber.subscribe(self._link.key("topic", topic))
        asked = True
        while True:
            found = await subscriber.get_message(timeout=_QUIET_S)
            if found is None:
                if asked:
                    raise TimeoutError
                await subscriber.ping()
            elif found["type"] == "subscribe":
                yield None
            elif found["type"] == "message":
                yield found["data"]
            asked = found is None
