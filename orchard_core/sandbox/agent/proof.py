"""Who answers at an address must show that it knows the token before it is told it.

An address in a network may be another's by the time somebody dials it: a pod's is given anew as soon as the
pod is gone. Whoever listens there now would be sent the token, and its answers would be believed.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from orchard_core.errors import AgentRefused, FileError, SandboxError
from orchard_core.sandbox.agent.faults import agent_error
from orchard_core.sandbox.agent.wire import Connection
from orchard_core.types.sandbox import AgentEndpoint

_ANSWER_MAX = 4096
_NONCE_BYTES = 32
_REFUSALS = (401, 421)
"""An agent says so of a token that it does not know, and of another's id. Nothing else is believed."""


class Proof:
    """The question for one token and one sandbox."""

    def __init__(self, endpoint: AgentEndpoint) -> None:
        self._key = hashlib.sha256(endpoint.token.encode()).digest()
        self._id = endpoint.sandbox_id
        self._url = endpoint.url
        self._name = _keyed(self._key, b"orchard-agent-name")

    async def demand(self, connection: Connection, patience: float) -> None:
        """Ask on a connection on which nothing was said. Raises AgentRefused when the answer is not the
        agent's, SandboxConnectionLost when there is none."""
        nonce = secrets.token_hex(_NONCE_BYTES)
        target = f"/v1/proof?token={self._name}&nonce={nonce}"
        answer = await connection.call("GET", target, {"X-Orchard-Sandbox": self._id}, b"", patience)
        try:
            told = await answer.read(_ANSWER_MAX)
        except FileError:
            told = b""
        if answer.status in _REFUSALS:
            raise _refusal(answer.status, told)
        good = _keyed(self._key, b"orchard-agent-proof", nonce.encode(), self._id.encode()).encode()
        if answer.status != 200 or not hmac.compare_digest(told, good):
            raise AgentRefused(
                f"what answers at {self._url} is not the agent of sandbox {self._id}: it does not know "
                "its token, which was not sent",
                hint="the address is another's by now, or the agent is older than this client",
            )


def _refusal(status: int, told: bytes) -> SandboxError:
    error = agent_error(status, told)
    return error if isinstance(error, AgentRefused) else AgentRefused(error.message)


def _keyed(key: bytes, *parts: bytes) -> str:
    return hmac.digest(key, b"\0".join(parts), "sha256").hex()
