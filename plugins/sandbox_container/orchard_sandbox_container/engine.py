"""Calls to Docker or Podman: one small HTTP client over their common API.

Not the `docker` package: it blocks, so that each call would take a thread, and cannot be cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote

import aiohttp

from orchard_core import DiskFull, SandboxCreateFailed, SandboxUnavailable
from orchard_sandbox_container.address import EngineAddress

CALL_S = 120.0
_WORDS_MAX = 2000

Query = Mapping[str, str]


class EngineRefused(SandboxCreateFailed):
    """The engine answered with an error; `status` is its HTTP status."""

    def __init__(self, message: str, *, status: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status


class Engine:
    """One engine. Every method raises SandboxUnavailable when it does not answer, and EngineRefused, or
    DiskFull, with its own words."""

    def __init__(self, address: EngineAddress) -> None:
        self.address = address
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Drop the connections; a later call opens new ones."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def get(self, path: str, query: Query | None = None) -> Any:
        """What the engine tells."""
        return await self._json("GET", path, query)

    async def post(
        self, path: str, query: Query | None = None, body: object = None, *, patience: float = CALL_S
    ) -> Any:
        """Have it do something; None when it says nothing about it."""
        return await self._json("POST", path, query, body, patience=patience)

    async def delete(self, path: str, query: Query | None = None) -> None:
        """Remove something; fine when it is gone."""
        try:
            await self._json("DELETE", path, query)
        except EngineRefused as error:
            if error.status != 404:
                raise

    async def stream(
        self,
        path: str,
        query: Query | None = None,
        *,
        data: AsyncIterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        patience: float,
    ) -> AsyncIterator[dict[str, Any]]:
        """POST, and each JSON object of the answer as it comes."""
        sent = {"Content-Type": "application/x-tar", **(headers or {})} if data is not None else headers
        async with self._open("POST", path, query, data, sent, patience) as answer:
            await _check(answer)
            decoder, text = json.JSONDecoder(), ""
            async for piece in answer.content.iter_any():
                text += piece.decode("utf-8", "replace")
                while text := text.lstrip():
                    try:
                        found, end = decoder.raw_decode(text)
                    except json.JSONDecodeError:
                        break
                    text = text[end:]
                    yield found

    async def logs(self, container: str) -> str:
        """The last words of a container, for people; empty when it cannot be had."""
        query = {"stdout": "1", "stderr": "1", "tail": "20"}
        try:
            async with self._open(
                "GET", f"/containers/{container}/logs", query, None, None, CALL_S
            ) as answer:
                await _check(answer)
                return _unframed(await answer.content.read(64 * 1024)).strip()[-_WORDS_MAX:]
        except (EngineRefused, SandboxUnavailable):
            return ""

    async def _json(
        self, method: str, path: str, query: Query | None, body: object = None, *, patience: float = CALL_S
    ) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} if body is not None else None
        async with self._open(method, path, query, data, headers, patience) as answer:
            await _check(answer)
            raw = await answer.read()
        return json.loads(raw) if raw.strip() else None

    @contextlib.asynccontextmanager
    async def _open(
        self,
        method: str,
        path: str,
        query: Query | None,
        data: Any,
        headers: Mapping[str, str] | None,
        patience: float,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            async with self._connected().request(
                method,
                f"{self.address.url}{quote(path, safe='/:@')}",
                params=query,
                data=data,
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=patience, sock_connect=10),
            ) as answer:
                yield answer
        except TimeoutError as error:
            raise SandboxUnavailable(
                f"the engine at {self.address} did not answer {method} {path} within {patience:g} s",
                hint="see whether `docker ps` or `podman ps` answers",
            ) from error
        except (aiohttp.ClientError, OSError) as error:
            raise SandboxUnavailable(
                f"the engine at {self.address} cannot be reached: {error}",
                hint="start it (`systemctl start docker`, or `podman system service --time 0`)",
            ) from error

    def _connected(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if self._session is None or self._session._loop is not loop:
            path = self.address.socket
            connector = aiohttp.UnixConnector(path, limit=0) if path else aiohttp.TCPConnector(limit=0)
            self._session = aiohttp.ClientSession(connector=connector)
        return self._session


async def _check(answer: aiohttp.ClientResponse) -> None:
    if answer.status < 400:
        return
    text = (await answer.content.read(64 * 1024)).decode("utf-8", "replace")
    try:
        found = json.loads(text)
        text = str(found.get("message") or found.get("cause") or text)
    except (ValueError, AttributeError):
        pass
    words = text.strip()[:_WORDS_MAX] or f"HTTP {answer.status}"
    if "no space left on device" in words:
        raise DiskFull(
            f"the container engine's disk is full: {words}", hint="`docker system prune` makes room"
        )
    raise EngineRefused(f"the container engine refused: {words}", status=answer.status)


def _unframed(raw: bytes) -> str:
    """The text of a log stream, whose pieces each have 8 bytes before them."""
    text = b""
    while len(raw) >= 8 and raw[0] in (0, 1, 2) and raw[1:4] == b"\0\0\0":
        size = int.from_bytes(raw[4:8], "big")
        text, raw = text + raw[8 : 8 + size], raw[8 + size :]
    return (text + raw).decode("utf-8", "replace")


async def find_engine(addresses: list[EngineAddress]) -> tuple[Engine, dict[str, Any]]:
    """The first engine that answers, and what it tells of itself. Raises SandboxUnavailable, which names what
    was tried."""
    refused = []
    for address in addresses:
        engine = Engine(address)
        try:
            async with asyncio.timeout(15):
                return engine, await engine.get("/info")
        except (SandboxUnavailable, EngineRefused, TimeoutError) as error:
            refused.append(f"{address}: {getattr(error, 'message', 'no answer within 15 s')}")
            await engine.close()
    raise SandboxUnavailable(
        "no container engine answers here"
        + (": " + "; ".join(refused) if refused else ": no socket was found"),
        hint="start Docker, or Podman's service (`systemctl --user start podman.socket`), or name one: "
        "DOCKER_HOST=unix:///PATH",
    )
