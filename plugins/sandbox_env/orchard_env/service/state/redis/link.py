"""The connection to a Redis server: bounded calls, one kind of error, and a way back by itself."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from orchard_core import ConfigError
from orchard_env.service.ending import ended
from orchard_env.service.state.redis.settings import RedisSettings
from orchard_env.service.state.values import StateHealth, StateUnavailable

if TYPE_CHECKING:
    from redis.asyncio import Redis

_LOG = logging.getLogger("orchard_env.state")
_SOONEST_S, _LATEST_S = 0.1, 2.0
_WORDS = {
    "OOM": "its memory is full, and its policy is noeviction",
    "LOADING": "it is reading its data from disk",
    "READONLY": "it is a replica that cannot be written to",
    "MASTERDOWN": "its master is down",
    "MISCONF": "it cannot save to its disk",
    "NOAUTH": "it wants a password",
    "WRONGPASS": "it refuses the password",
    "NOPERM": "the user may not do what the service needs",
}


class RedisLink:
    """One pool of connections. After a fault every call fails at once, until a probe has gone through."""

    def __init__(self, settings: RedisSettings) -> None:
        """Raises ConfigError without the extra, or for a URL that cannot be one."""
        self._settings = settings
        self._redis = _client(settings)
        self._probe = _client(settings)
        self._scripts: dict[str, Any] = {}
        self._fault = ""
        self._generation = 0
        self._epoch = b""
        self._returning: asyncio.Task[None] | None = None
        self.on_return: Callable[[], Awaitable[None]] | None = None
        """Awaited when the server is back, before calls are let through (StateUnavailable puts it off), and
        when it was found to have forgotten everything."""

    def key(self, *parts: str) -> str:
        """A key of ours; the braces keep all of them on one node of a Redis cluster."""
        return ":".join((f"{{{self._settings.prefix}}}", *parts))

    async def run(self, script: str, keys: Sequence[str], arguments: Sequence[object]) -> Any:
        """Run a Lua script, as one step. Raises StateUnavailable."""
        if self._fault:
            raise self._unavailable()
        return await self.run_now(script, keys, arguments)

    async def run_now(self, script: str, keys: Sequence[str], arguments: Sequence[object]) -> Any:
        """As `run`, even while the server counts as away."""
        if script not in self._scripts:
            self._scripts[script] = self._redis.register_script(script)
        prepared = self._scripts[script]
        return await self._bounded(lambda: prepared(keys=list(keys), args=list(arguments)))

    async def call(self, *command: object) -> Any:
        """Run one command. Raises StateUnavailable."""
        if self._fault:
            raise self._unavailable()
        redis: Any = self._redis
        return await self._bounded(lambda: redis.execute_command(*command))

    def subscriber(self) -> Any:
        """A connection of its own for a listener."""
        return self._redis.pubsub()

    def health(self) -> StateHealth:
        """Whether calls go through."""
        return StateHealth(shared=not self._fault, detail=self._fault, generation=self._generation)

    async def saw_epoch(self, epoch: bytes) -> None:
        """What the server says its data is; another than before means that it forgot what it had."""
        if self._epoch not in (b"", epoch):
            self._generation += 1
            if self.on_return is not None:
                await self.on_return()
        self._epoch = epoch

    async def close(self) -> None:
        """Close every connection."""
        await ended(self._returning)
        await self._redis.aclose()
        await self._probe.aclose()

    async def _bounded(self, work: Callable[[], Awaitable[Any]]) -> Any:
        from redis.exceptions import RedisError

        generation = self._generation
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                return await work()
        except TimeoutError as error:
            self._lost(f"no answer within {self._settings.timeout_s:g} s", generation)
            raise self._unavailable() from error
        except (RedisError, OSError) as error:
            self._lost(_in_words(error), generation)
            raise self._unavailable() from error

    def _unavailable(self) -> StateUnavailable:
        return StateUnavailable(
            f"the shared Redis is away: {self._fault or 'it has just come back'}",
            hint="see that the server runs, lets the service in, and has memory left; it is tried again",
        )

    def _lost(self, why: str, generation: int) -> None:
        if generation != self._generation:
            return  # a call from before the server was back says nothing of how it is now
        if not self._fault:
            _LOG.warning("the shared Redis is away: %s; each replica goes on by itself", why)
        self._fault = why
        if self._returning is None or self._returning.done():
            self._returning = asyncio.create_task(self._return(), name="redis-return")

    async def _return(self) -> None:
        from redis.exceptions import RedisError

        pause = _SOONEST_S
        while True:
            await asyncio.sleep(pause * (0.5 + random.random() / 2))  # noqa: S311 - jitter
            pause = min(2 * pause, _LATEST_S)
            try:
                async with asyncio.timeout(self._settings.timeout_s):
                    await self._probe.set(self.key("probe"), b"1", px=1000)
                if self.on_return is not None:
                    await self.on_return()
            except (RedisError, OSError, TimeoutError) as error:
                self._fault = _in_words(error)
            except StateUnavailable:
                continue
            else:
                break
        self._fault = ""
        self._generation += 1
        _LOG.warning("the shared Redis is back")


def _client(settings: RedisSettings) -> Redis:
    try:
        from redis.asyncio import BlockingConnectionPool, Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff
    except ImportError as error:
        raise ConfigError(
            "a shared Redis needs the extra redis", hint="pip install 'orchard-env[redis]'"
        ) from error
    options: dict[str, Any] = {"ssl_ca_certs": str(settings.ca_file)} if settings.ca_file else {}
    if settings.password is not None:
        options["password"] = settings.password.get_secret_value()
    try:
        pool = BlockingConnectionPool.from_url(
            settings.url.get_secret_value(),
            max_connections=settings.connections,
            timeout=settings.timeout_s,
            socket_connect_timeout=settings.timeout_s,
            # A call that may have arrived is not sent again: what comes after it decides.
            retry=Retry(NoBackoff(), 0),
            **options,
        )
    except ValueError as error:
        raise ConfigError(f"the Redis URL is wrong: {error}", hint="write redis://HOST:PORT/0") from error
    return Redis(connection_pool=pool)


def _in_words(error: BaseException) -> str:
    """What is wrong; never the URL, which may hold a password."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    text = str(error)
    code = text.partition(" ")[0]
    # The library strips the code of some of these.
    for known, words in _WORDS.items():
        if code == known or type(error).__name__.upper().startswith(known):
            return words
    if "already authenticated" in text or "Authentication required" in text:
        return _WORDS["NOAUTH"]
    if "invalid username-password" in text:
        return _WORDS["WRONGPASS"]
    if "maxmemory" in text:
        return _WORDS["OOM"]
    return f"{type(error).__name__}: {text}"[:200]
