"""Requests to a service: one pool of connections, the key, bounded repeats, typed errors."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import aiohttp

from orchard_core import (
    FileError,
    OrchardError,
    SandboxConnectionLost,
    SandboxError,
    SandboxGone,
    ServiceOverloaded,
)
from orchard_env.client.address import ServiceAddress
from orchard_env.client.problems import error_of

ANSWER_MAX = 256 << 20
"""Bytes of an answer that is read whole; a base64 file of 128 MiB fits."""
_CONNECT_S = 15.0
_PAUSES_S = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0)
"""A service that restarts is away for a while, and what runs in its sandboxes goes on."""
_FIRST = 3
"""Pauses for one that has never answered: its address may be wrong."""
_RETRY_AFTER_MAX_S = 30.0
_OVERLOADED_S = 180.0
"""How long a service that has no room is asked again."""

_T = TypeVar("_T")
Params = Mapping[str, str | int | float | list[str]]


class ServiceHttp:
    """The calls of one client. Made outside of a loop, it opens its connections in the one that first uses
    it."""

    def __init__(self, address: ServiceAddress, *, timeout_s: float) -> None:
        self.address = address
        self._timeout_s = timeout_s
        self._session: aiohttp.ClientSession | None = None
        self._answered = False
        self._loop: asyncio.AbstractEventLoop | None = None

    async def json(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        repeat: bool = False,
        timeout_s: float | None = None,
        missing: type[OrchardError] = SandboxGone,
    ) -> dict[str, Any]:
        """The JSON object of a good answer. `repeat` says that sending it twice does no harm; then what a
        broken connection or a gateway leaves unknown is asked again. A service that has no room is asked
        again in any case, since it did nothing.

        Raises the error that the answer stands for, SandboxConnectionLost, ServiceOverloaded.
        """
        raw = None if body is None else json.dumps(body).encode()

        async def once() -> dict[str, Any]:
            async with self.open(
                method,
                path,
                params=params,
                data=raw,
                headers=headers,
                timeout_s=timeout_s,
                missing=missing,
            ) as answer:
                return await _object(answer, f"{method} {path}")

        return await self.repeated(once, repeat=repeat)

    async def repeated(self, once: Callable[[], Awaitable[_T]], *, repeat: bool) -> _T:
        """What `once` gives, again within bounds while that may help."""
        pauses = iter(_PAUSES_S if self._answered else _PAUSES_S[:_FIRST])
        waited_s = 0.0
        while True:
            try:
                return await once()
            except ServiceOverloaded as error:
                if waited_s > _OVERLOADED_S or not (repeat or error.retry_after_s is not None):
                    raise
                asked = 1.0 if error.retry_after_s is None else min(error.retry_after_s, _RETRY_AFTER_MAX_S)
                pause = max(0.05, asked) * random.uniform(1.0, 1.5)  # noqa: S311 - spreads callers, guards nothing
            except SandboxConnectionLost:
                pause = next(pauses, 0.0) * random.uniform(0.5, 1.5)  # noqa: S311 - likewise
                if not repeat or not pause:
                    raise
            waited_s += pause
            await asyncio.sleep(pause)

    @asynccontextmanager
    async def open(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        data: bytes | AsyncIterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        missing: type[OrchardError] = SandboxGone,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A good answer, whose body is still to be read. Sent once. Raises as `json`."""
        total = self._timeout_s if timeout_s is None else timeout_s
        limits = aiohttp.ClientTimeout(total=total or None, connect=_CONNECT_S)
        sent = {"Content-Type": "application/json"} if isinstance(data, bytes) else {}
        where = f"{method} {self.address.url}{path}"
        try:
            async with self._open().request(
                method,
                self.address.url + path,
                params=params,
                data=data,
                headers={**sent, **(headers or {})},
                timeout=limits,
                allow_redirects=False,
            ) as answer:
                self._answered = True
                if not 200 <= answer.status < 300:
                    body = await answer.content.read(1 << 16)
                    raise error_of(answer.status, body, answer.headers, where=where, missing=missing)
                yield answer
        except (aiohttp.ClientError, OSError) as error:
            raise SandboxConnectionLost(
                f"{where} failed: {_reason(error)}",
                hint="see that the service runs there, and that SANDBOX_BASE_URL is right",
            ) from error

    def socket(self, path: str, *, key_in_query: bool) -> Any:
        """A WebSocket to the service, to be entered. The key goes in a header, or where only the published
        contract is spoken, in the query."""
        params = {"api_key": self.address.api_key} if key_in_query and self.address.api_key else {}
        return self._open().ws_connect(
            self.address.url + path, params=params, max_msg_size=16 << 20, heartbeat=60.0
        )

    def _open(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            self._loop = loop
            tls = self.address.tls()
            self._session = aiohttp.ClientSession(
                headers=self.address.headers,
                connector=aiohttp.TCPConnector(ssl=tls or True, limit=0, keepalive_timeout=4.0),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    async def close(self) -> None:
        """Drop the connections."""
        if self._session is not None and self._loop is asyncio.get_running_loop():
            await self._session.close()
        self._session = None


def _reason(error: aiohttp.ClientError | OSError) -> str:
    """The system's own words of a connection that was not made: aiohttp's tell of TLS where there is none."""
    told = error.os_error if type(error) is aiohttp.ClientConnectorError else error
    return str(told) or type(error).__name__


async def _object(answer: aiohttp.ClientResponse, where: str) -> dict[str, Any]:
    raw = bytearray()
    async for piece in answer.content.iter_any():
        raw += piece
        if len(raw) > ANSWER_MAX:
            raise FileError(
                f"{where}: the answer has more than {ANSWER_MAX} bytes",
                hint="move large files by download_file",
            )
    if not raw and answer.status == 204:
        return {}
    try:
        said = json.loads(raw)
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise SandboxError(
            f"{where} was answered by something that is no sandbox service: {bytes(raw[:80])!r}",
            hint="see that SANDBOX_BASE_URL is right",
        )
    return said
