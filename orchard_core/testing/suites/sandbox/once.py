"""At most once, and the agent as programs of other languages reach it. Field faults 3 and 18."""

from __future__ import annotations

import uuid
from typing import ClassVar

from orchard_core.sandbox.contract import Sandbox
from orchard_core.testing.suites.sandbox.agent_http import ask, run_request, send_and_hang_up
from orchard_core.testing.suites.sandbox.base import ShellSuiteBase


class OnceSuite(ShellSuiteBase):
    """A command runs at most once, whatever happens to the connection; only its own sandbox answers."""

    needs_agent: ClassVar[bool] = True
    """Read by `_fits` on the class that defines a test."""

    async def test_the_same_run_sent_again_attaches(self, sandbox: Sandbox, place: str) -> None:
        """Clients repeat what had no answer: the same id must give the same run, not a second one."""
        endpoint = await sandbox.endpoint()
        body = run_request(uuid.uuid4().hex, f"echo ran >> {place}/count; echo done")
        for _ in range(3):
            answer = await ask(endpoint, "POST", "/v1/exec?wait=20", body)
            assert answer.status == 200
            status, output = answer.run()
            assert (status["exit_code"], output) == (0, b"done\n")
        assert await sandbox.read_bytes(f"{place}/count") == b"ran\n"

    async def test_a_dropped_connection_loses_and_repeats_nothing(self, sandbox: Sandbox, place: str) -> None:
        """The request may have arrived although its answer did not: the repeat must find the first run."""
        endpoint = await sandbox.endpoint()
        body = run_request(uuid.uuid4().hex, f"echo ran >> {place}/count; sleep 0.5; echo done")
        await send_and_hang_up(endpoint, "POST", "/v1/exec?wait=20", body)
        answer = await ask(endpoint, "POST", "/v1/exec?wait=20", body)
        status, output = answer.run()
        assert (status["exit_code"], output) == (0, b"done\n")
        assert await sandbox.read_bytes(f"{place}/count") == b"ran\n"

    async def test_the_same_id_with_another_command_is_refused(self, sandbox: Sandbox, place: str) -> None:
        """An id stands for one command: answering another with the old result hides a client's fault."""
        endpoint = await sandbox.endpoint()
        run_id = uuid.uuid4().hex
        await ask(endpoint, "POST", "/v1/exec?wait=20", run_request(run_id, "echo first"))
        answer = await ask(
            endpoint, "POST", "/v1/exec?wait=20", run_request(run_id, f"echo > {place}/second")
        )
        assert 400 <= answer.status < 500
        assert "second" not in [entry.name for entry in await sandbox.list(place)]

    async def test_the_endpoint_speaks_plain_http(self, sandbox: Sandbox, place: str) -> None:
        """Any language must be able to use it: url, token and sandbox id are all it takes."""
        endpoint = await sandbox.endpoint()
        await sandbox.write(f"{place}/file", b"content")
        assert (await ask(endpoint, "GET", "/v1/health")).status == 200
        answer = await ask(endpoint, "GET", f"/v1/files?path={place}/file")
        assert (answer.status, answer.body) == (200, b"content")

    async def test_a_wrong_token_or_id_is_refused(self, sandbox: Sandbox) -> None:
        """An address may come to belong to another sandbox: check token and id on every call."""
        endpoint = await sandbox.endpoint()
        for token in ("", "wrong", endpoint.token + "x"):
            assert (await ask(endpoint, "GET", "/v1/health", token=token)).status == 401
        wrong = await ask(endpoint, "GET", "/v1/health", sandbox_id="another-sandbox")
        assert 400 <= wrong.status < 500

    async def test_the_endpoints_token_is_scoped(self, sandbox: Sandbox) -> None:
        """Who got the endpoint may use commands and files, not stop the agent or make tokens."""
        endpoint = await sandbox.endpoint()
        for target in ("/v1/shutdown", "/v1/tokens", "/v1/kill"):
            assert (await ask(endpoint, "POST", target)).status == 403
        assert await sandbox.alive()

    async def test_the_token_is_no_secret_left_inside(self, sandbox: Sandbox) -> None:
        """A command that finds the agent's token speaks for the driver: not in environments nor arguments."""
        token = (await sandbox.endpoint()).token
        look = "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'; env"
        seen = await sandbox.exec(look)
        assert token.encode() not in seen.stdout
