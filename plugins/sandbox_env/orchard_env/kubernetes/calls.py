"""One call to the API server: its turn, its tries, its time, and the typed error of its failure."""

from __future__ import annotations

import asyncio
import gc
import random
import ssl
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
import orjson

from orchard_core import OrchardError, SandboxUnavailable, ServiceOverloaded
from orchard_env.kubernetes.connection import Connection
from orchard_env.kubernetes.faults import ObjectChanged, refusal
from orchard_env.kubernetes.rate import RateLimit
from orchard_env.kubernetes.resources import Manifest

CONNECT_S = 10.0
_CLOCK_S = 10.0
_LARGE = 256 << 10
_PAUSE_S, _PAUSE_MAX_S = 0.1, 10.0
_NOT_DONE = frozenset({403, 429, 503})
"""The server has not done what it was asked to when it answers so."""
_MAYBE_DONE = frozenset({500, 502, 504})
"""The server may have done what it was asked to before it answered so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiLimits:
    """How hard the server may be pressed, and how long a call may take."""

    per_s: float = 100.0
    """Calls a second on the average, all callers together."""
    burst: int = 200
    """Calls that may go at once after a quiet time."""
    call_s: float = 30.0
    """A try that has no answer after this many seconds is lost."""
    patience_s: float = 90.0
    """A call is repeated, where that does no harm, until this many seconds have passed."""
    connections: int = 100
    """Connections held to the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What is asked."""

    method: str
    """HTTP method."""
    path: str
    """Path on the server."""
    what: str
    """For people, such as "create pods sandbox-1"."""
    counted: str
    """The name it is counted by, such as "create pods"."""
    query: Mapping[str, str] = field(default_factory=dict)
    """Query parameters."""
    body: Any = None
    """JSON, or None."""
    content_type: str = "application/json"
    """Of the body."""
    repeatable: bool = True
    """To do it twice does no harm."""
    patience_s: float | None = None
    """Instead of the usual one."""


@dataclass(slots=True)
class _Tries:
    """Where a call stands."""

    ends: float
    pause_max: float = _PAUSE_S
    unsure: bool = False
    """A try may have been done though its answer is lost."""
    renewed: bool = False


class Caller:
    """Sends calls."""

    def __init__(self, connection: Connection, limits: ApiLimits) -> None:
        self._connection = connection
        self._limits = limits
        self.rate = RateLimit(limits.per_s, limits.burst)
        self.counts: Counter[str] = Counter()
        self._ahead = time.time() - time.monotonic()
        self._ahead_until = 0.0

    async def ask(self, call: Call) -> Manifest:
        """The JSON answered. Raises typed errors."""
        patience = self._limits.patience_s if call.patience_s is None else call.patience_s
        tries = _Tries(ends=time.monotonic() + patience)
        while True:
            response, problem = await self._try(call, tries)
            if problem is None:
                return response
            pause = max(random.uniform(0, tries.pause_max), _asked_pause(problem))  # noqa: S311
            if time.monotonic() + pause > tries.ends:
                raise problem
            tries.pause_max = min(tries.pause_max * 2, _PAUSE_MAX_S)
            await asyncio.sleep(pause)

    def patience(self, most: float) -> float:
        """The usual one, but not more than that."""
        return min(self._limits.patience_s, most)

    def now(self) -> float:
        """The server's clock, seconds since the epoch, to a second: steps of ours do not touch it."""
        return time.monotonic() + self._ahead

    async def stream(self, call: Call, silent_s: float) -> aiohttp.ClientResponse:
        """A good answer whose body comes by and by; one try. Raises typed errors."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=silent_s)
        try:
            response = await self._send(call, timeout)
            if response.status < 300:
                return response
            problem = self._refused(call, response, await response.read())
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _unreachable(call, error) from error
        if response.status == 401:
            await self._connection.renew()  # for the next try, which is the caller's
        raise problem

    async def _try(self, call: Call, tries: _Tries) -> tuple[Manifest, OrchardError | None]:
        """The answer, or what may be mended by another try; raises what may not."""
        timeout = aiohttp.ClientTimeout(total=self._limits.call_s, sock_connect=CONNECT_S)
        try:
            response = await self._send(call, timeout)
            body = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            problem = _unreachable(call, error)
            sent = not isinstance(error, aiohttp.ClientConnectorError)
            if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError) or (sent and not call.repeatable):
                raise problem from error
            tries.unsure |= sent
            return {}, problem
        self._note_time(response.headers.get("Date"))
        if response.status < 300:
            self.rate.accepted()
            return _read_json(body), None
        return {}, await self._another(call, response, body, tries)

    async def _another(
        self, call: Call, response: aiohttp.ClientResponse, body: bytes, tries: _Tries
    ) -> OrchardError:
        """The error, if another try may mend it; else it is raised."""
        status = response.status
        problem = self._refused(call, response, body)
        if status == 401 and not tries.renewed:
            tries.renewed = True
            await self._connection.renew()
            return problem
        if isinstance(problem, ObjectChanged):
            # Of a create, "changed" speaks of the quota that it is counted in: others were quicker.
            if call.method == "POST":
                return problem
            problem.unsure = tries.unsure
        again = isinstance(problem, ServiceOverloaded) and (call.repeatable or status in _NOT_DONE)
        if not again:
            raise problem
        tries.unsure |= status in _MAYBE_DONE
        return problem

    async def _send(self, call: Call, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        await self.rate.turn()
        self.counts[call.counted] += 1
        return await self._connection.request(
            call.method, call.path, call.query, call.body, call.content_type, timeout
        )

    def _note_time(self, date: str | None) -> None:
        now = time.monotonic()
        if date is None or now < self._ahead_until:
            return
        with suppress(ValueError):
            self._ahead = parsedate_to_datetime(date).timestamp() - now
            self._ahead_until = now + _CLOCK_S

    def _refused(self, call: Call, response: aiohttp.ClientResponse, body: bytes) -> OrchardError:
        asked = _seconds(response.headers.get("Retry-After"))
        if response.status == 429:
            self.rate.refused(min(asked or 1.0, _PAUSE_MAX_S))
        return refusal(response.status, body, call.what, retry_after_s=asked)


def _read_json(body: bytes) -> Manifest:
    """A page of pods is some 100,000 new dicts, none of them garbage: to look through them for garbage again
    and again while they are made doubles the time."""
    collects = len(body) > _LARGE and gc.isenabled()
    if collects:
        gc.disable()
    try:
        found: Manifest = orjson.loads(body)
        return found
    finally:
        if collects:
            gc.enable()


def _unreachable(call: Call, error: BaseException) -> SandboxUnavailable:
    words = str(error) or type(error).__name__
    return SandboxUnavailable(
        f"the cluster's API server does not answer ({words}), wanted to {call.what}",
        hint="see whether it is up and can be reached from here: kubectl version",
    )


def _asked_pause(problem: OrchardError) -> float:
    if isinstance(problem, ServiceOverloaded) and problem.retry_after_s:
        return problem.retry_after_s
    return 0.0


def _seconds(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text else None
    except ValueError:
        return None  # A date; servers of Kubernetes send seconds.
