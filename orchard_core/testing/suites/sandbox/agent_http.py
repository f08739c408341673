"""The agent's protocol spoken by hand, as a program in any language would."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from orchard_core.sandbox.agent.address import AgentAddress
from orchard_core.types.sandbox import AgentEndpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class RawAnswer:
    """One HTTP answer."""

    status: int
    """HTTP status."""
    body: bytes
    """The body, chunks joined."""

    def run(self) -> tuple[dict[str, Any], bytes]:
        """A run's status and the kept bytes of its outputs, from the length-prefixed form."""
        length = int.from_bytes(self.body[:4], "big")
        return json.loads(self.body[4 : 4 + length]), self.body[4 + length :]


async def ask(
    endpoint: AgentEndpoint,
    method: str,
    target: str,
    body: bytes = b"",
    *,
    token: str | None = None,
    sandbox_id: str | None = None,
) -> RawAnswer:
    """One request on a connection of its own. Raises OSError when nobody listens."""
    reader, writer = await AgentAddress.parse(endpoint.url).connect()
    try:
        writer.write(_request(endpoint, method, target, body, token, sandbox_id))
        await writer.drain()
        return _parse(await reader.read())
    finally:
        writer.close()


async def send_and_hang_up(endpoint: AgentEndpoint, method: str, target: str, body: bytes) -> None:
    """Send a whole request and cut the connection without waiting for its answer."""
    _, writer = await AgentAddress.parse(endpoint.url).connect()
    writer.write(_request(endpoint, method, target, body, None, None))
    await writer.drain()
    writer.transport.abort()


def run_request(run_id: str, script: str) -> bytes:
    """The body of POST /v1/exec for a shell script."""
    spec = json.dumps({"id": run_id, "script": script}).encode()
    return len(spec).to_bytes(4, "big") + spec


def _request(
    endpoint: AgentEndpoint, method: str, target: str, body: bytes, token: str | None, sandbox_id: str | None
) -> bytes:
    lines = [
        f"{method} {target} HTTP/1.1",
        "Host: agent",
        "Connection: close",
        f"Authorization: Bearer {endpoint.token if token is None else token}",
        f"X-Orchard-Sandbox: {endpoint.sandbox_id if sandbox_id is None else sandbox_id}",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _parse(raw: bytes) -> RawAnswer:
    head, _, body = raw.partition(b"\r\n\r\n")
    if not head:
        raise ConnectionError("the agent closed the connection without an answer")
    if b"transfer-encoding: chunked" in head.lower():
        body = _unchunk(body)
    return RawAnswer(status=int(head.split(b" ", 2)[1]), body=body)


def _unchunk(body: bytes) -> bytes:
    whole = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size.partition(b";")[0], 16)
        if length == 0:
            return whole
        whole += rest[:length]
        body = rest[length + 2 :]
    return whole
