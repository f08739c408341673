"""What is sent again, and what never is."""

from __future__ import annotations

import pytest
from orchard_env import AsyncSandboxClient

from orchard_core import AgentRefused, SandboxConnectionLost, SandboxError

from .published import published

EXEC = "POST /sandboxes/one/exec"


async def test_a_foreign_service_is_sent_a_command_once_whatever_breaks() -> None:
    async with published() as service, AsyncSandboxClient(service.url) as client:
        sandbox = await client.create_sandbox("i", sandbox_id="one")
        service.faults = [(EXEC, None)]
        with pytest.raises(SandboxConnectionLost):
            await sandbox.exec("count")
        service.faults = [(EXEC, 502)]
        with pytest.raises(SandboxConnectionLost):
            await sandbox.exec("count")
        service.faults = [(EXEC, 500)]
        with pytest.raises(SandboxError):
            await sandbox.exec("count")
        bodies = service.bodies("POST", "/sandboxes/one/exec")
        assert len(bodies) == 3
        assert all("exec_id" not in body for body in bodies)


async def test_a_service_of_ours_is_sent_it_again_under_the_same_id() -> None:
    async with published(extends=True) as service, AsyncSandboxClient(service.url) as client:
        sandbox = await client.create_sandbox("i", sandbox_id="one")
        service.faults = [(EXEC, None), (EXEC, 502)]
        assert (await sandbox.exec("count")).stdout == "ran"
        ids = [body["exec_id"] for body in service.bodies("POST", "/sandboxes/one/exec")]
        assert len(ids) == 3
        assert len(set(ids)) == 1
        await sandbox.exec("count")
        assert service.bodies("POST", "/sandboxes/one/exec")[-1]["exec_id"] not in ids


async def test_reading_and_deleting_are_sent_again() -> None:
    async with published() as service, AsyncSandboxClient(service.url) as client:
        service.faults = [("GET /health", None), ("GET /health", 502), ("DELETE /sandboxes/one", None)]
        assert (await client.health())["status"] == "ok"
        await client.delete_sandbox("one")
        assert service.faults == []


async def test_a_service_without_room_is_asked_again_when_it_says() -> None:
    async with published() as service, AsyncSandboxClient(service.url) as client:
        service.faults = [("POST /sandboxes", 503), ("POST /sandboxes", 429)]
        sandbox = await client.create_sandbox("i", sandbox_id="one")
        assert len(service.bodies("POST", "/sandboxes")) == 3
        assert (await sandbox.exec("x")).succeeded


async def test_an_id_of_the_callers_is_not_asked_for_twice() -> None:
    async with published() as service, AsyncSandboxClient(service.url) as client:
        service.faults = [("POST /sandboxes", None)]
        with pytest.raises(SandboxConnectionLost):
            await client.create_sandbox("i", sandbox_id="one")
        assert len(service.bodies("POST", "/sandboxes")) == 1
        assert service.bodies("DELETE", "/sandboxes/one")


async def test_a_service_that_cannot_wait_is_polled() -> None:
    async with published(waits=False) as service, AsyncSandboxClient(service.url) as client:
        sandbox = await client.create_sandbox("i", sandbox_id="one", poll_interval=0.01)
        assert sandbox.status == "ready"


async def test_a_refused_key_is_a_typed_error_that_says_what_to_set() -> None:
    async with published() as service, AsyncSandboxClient(service.url) as client:
        service.faults = [("GET /sandboxes/one", 401)]
        with pytest.raises(AgentRefused, match="SANDBOX_API_KEY"):
            await client.get_sandbox("one")
