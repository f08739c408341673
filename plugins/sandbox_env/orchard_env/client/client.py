"""The client of a sandbox service: the one implementation, asynchronous."""

from __future__ import annotations

import asyncio
import time
import uuid
import weakref
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any

from orchard_core import (
    OrchardError,
    SandboxCreateFailed,
    SandboxError,
    SandboxExists,
    SandboxGone,
    unbroken,
)
from orchard_env.client.address import address_of, prefix_of
from orchard_env.client.answers import SandboxAnswer
from orchard_env.client.http import ServiceHttp
from orchard_env.client.instance import WAIT_S, AsyncSandboxInstance
from orchard_env.client.owned import OwnedSandboxes, abandoned
from orchard_env.client.problems import NoSuchCall, WaitOver, error_named

_READY_S = 3600.0
_SLACK_S = 30.0
_DELETE_S = 60.0


class CreateFailed(SandboxCreateFailed, RuntimeError):
    """The sandbox was asked for and did not come up; the message has the service's reason."""


class AsyncSandboxClient:
    """Creates and finds sandboxes. As a context manager it deletes those it created."""

    def __init__(
        self,
        base_url: str | None = None,
        timeout: float = 1200,
        auto_cleanup: bool = True,
        api_key: str | None = None,
        prefix: str | None = None,
        ca_file: str | None = None,
    ) -> None:
        """Without `base_url`, `api_key`, `prefix` or `ca_file` (PEM; authorities that https trusts besides
        the system's) the environment's SANDBOX_BASE_URL, SANDBOX_API_KEY, SANDBOX_PREFIX and SANDBOX_CA_FILE
        count. `timeout` bounds each request, seconds. With `auto_cleanup` what it created is
        deleted when it is closed, collected, or the process ends. Raises ConfigError."""
        address = address_of(base_url, api_key, ca_file)
        self.base_url = address.url
        """Where the service is."""
        self.timeout = timeout
        """Seconds a request may take."""
        self.prefix = prefix_of(prefix)
        """What the ids of its sandboxes begin with."""
        self.http = ServiceHttp(address, timeout_s=timeout)
        """Its requests."""
        self._owned = OwnedSandboxes(address)
        self._auto_cleanup = auto_cleanup
        self._ours: bool | None = None
        collected = weakref.finalize(self, abandoned, self._owned)
        collected.atexit = False

    async def ours(self) -> bool:
        """Whether the service has more than the published contract; asked once."""
        if self._ours is None:
            try:
                said = await self.http.json("GET", "/v2/capabilities", repeat=True)
                self._ours = "capabilities" in said
            except (NoSuchCall, SandboxGone):
                self._ours = False
            except SandboxError:
                return False  # unknown: the next call asks again
        return self._ours

    async def create_sandbox(
        self,
        image: str,
        block_network: bool = True,
        sandbox_id: str | None = None,
        cpu: str | float | None = None,
        memory: str | None = None,
        timeout: float | None = None,
        wait_ready: bool = True,
        poll_interval: float = 1.0,
    ) -> AsyncSandboxInstance:
        """A new sandbox; with `wait_ready` once its commands run, at most `timeout` seconds from now.

        Raises SandboxExists for an id that is taken, SandboxCreateFailed with the service's reason,
        TimeoutError, ServiceOverloaded, ConfigError. Nothing is left behind then, nor when it is cancelled.
        """
        name = self._name(sandbox_id)
        body = {
            "image": image,
            "block_network": block_network,
            "sandbox_id": name,
            **{
                key: value for key, value in (("cpu", cpu), ("memory", memory), ("timeout", timeout)) if value
            },
        }
        if isinstance(body.get("cpu"), (int, float)):
            body["cpu"] = f"{body['cpu']:g}"
        self._owned.add(name)
        try:
            made = await self._created(body, ours=sandbox_id is None)
            if wait_ready:
                made = await self._ready(made, timeout, poll_interval)
        except SandboxExists:
            self._owned.drop(name)  # somebody else's
            raise
        except BaseException:
            await unbroken(self._undone(name))
            raise
        if not self._auto_cleanup:
            self._owned.drop(name)
        return AsyncSandboxInstance(self, made)

    def _name(self, asked: str | None) -> str:
        """An id of the caller's is sent as it is, but for the prefix; one of ours nobody else has."""
        name = asked or uuid.uuid4().hex[:12]
        if self.prefix and not name.startswith(f"{self.prefix}-"):
            name = f"{self.prefix}-{name}"
        return name if asked or self.prefix else f"sandbox-{name}"

    async def _created(self, body: Mapping[str, object], *, ours: bool) -> SandboxAnswer:
        """An id that we made up cannot be taken but by ourselves: sending it again is safe."""
        try:
            said = await self.http.json("POST", "/sandboxes", body=dict(body), repeat=ours)
        except SandboxExists:
            if not ours:
                raise
            said = await self.http.json("GET", f"/sandboxes/{body['sandbox_id']}", repeat=True)
        return SandboxAnswer.model_validate(said)

    async def _ready(self, made: SandboxAnswer, timeout: float | None, poll_s: float) -> SandboxAnswer:
        limit = timeout or made.timeout or _READY_S
        begun = time.monotonic()
        path, waits = f"/sandboxes/{made.sandbox_id}", True
        while made.status == "pending":
            left = limit - (time.monotonic() - begun)
            if left <= 0:
                raise TimeoutError(
                    f"sandbox {made.sandbox_id} was not ready within {limit:g} s; it is deleted"
                )
            if waits:
                said = await self.waited(f"{path}/wait", min(WAIT_S, left))
                waits = said is None or bool(said)
            else:
                await asyncio.sleep(poll_s)
                said = await self.http.json("GET", path, repeat=True)
            if said:
                made = SandboxAnswer.model_validate(said)
        if made.status != "ready":
            raise _failed(made)
        return made

    async def waited(
        self, path: str, seconds: float, *, missing: type[OrchardError] = SandboxGone
    ) -> dict[str, Any] | None:
        """What a wait on the server gave; None when it ran out, and nothing ({}) when this service has no
        waits. Raises what it ended with."""
        try:
            return await self.http.json(
                "GET",
                path,
                params={"timeout": round(max(1.0, seconds))},
                repeat=True,
                timeout_s=seconds + _SLACK_S,
                missing=missing,
            )
        except WaitOver:
            return None
        except NoSuchCall:
            return {}

    async def get_sandbox(self, sandbox_id: str) -> AsyncSandboxInstance:
        """One that stands, whoever made it; it is not deleted with this client. Raises SandboxGone."""
        said = await self.http.json("GET", f"/sandboxes/{sandbox_id}", repeat=True)
        return AsyncSandboxInstance(self, SandboxAnswer.model_validate(said))

    async def delete_sandbox(self, sandbox_id: str) -> None:
        """Delete one; fine when it is gone. Raises SandboxConnectionLost, AgentRefused."""
        with suppress(SandboxGone):
            await self.http.json("DELETE", f"/sandboxes/{sandbox_id}", repeat=True, timeout_s=_DELETE_S)
        self._owned.drop(sandbox_id)

    async def _undone(self, name: str) -> None:
        """What cannot be deleted now is deleted when the client closes."""
        with suppress(OrchardError):
            await self.http.json("DELETE", f"/sandboxes/{name}", repeat=True, timeout_s=_DELETE_S)
            self._owned.drop(name)

    async def cleanup_all(self) -> None:
        """Delete every sandbox that this client created. Raises the first error, after trying all."""
        ended = await asyncio.gather(
            *(self.delete_sandbox(one) for one in self._owned.ids), return_exceptions=True
        )
        for error in ended:
            if isinstance(error, BaseException):
                raise error

    async def health(self) -> dict[str, Any]:
        """What the service says of itself. Raises SandboxConnectionLost."""
        return await self.http.json("GET", "/health", repeat=True)

    async def close(self) -> None:
        """Delete what it created, with `auto_cleanup`, and drop its connections. Repeated calls are fine."""
        await unbroken(self._close())

    async def _close(self) -> None:
        try:
            if self._auto_cleanup:
                await self.cleanup_all()
        finally:
            await self.http.close()

    async def __aenter__(self) -> AsyncSandboxClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _failed(made: SandboxAnswer) -> OrchardError:
    reason = made.message or made.error or "the service gives no reason"
    error = error_named(made.error or "", f"sandbox {made.sandbox_id} did not come up: {reason}")
    if isinstance(error, SandboxCreateFailed):
        return error
    return CreateFailed(
        f"sandbox {made.sandbox_id} did not come up: {reason}", hint="the service's log says more"
    )
