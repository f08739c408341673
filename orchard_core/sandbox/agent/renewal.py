"""A new agent in place of an old one, on the same files: for places whose process cannot be started again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import replace

from orchard_core.errors import AgentRefused, SandboxConnectionLost, SandboxCreateFailed, SandboxGone
from orchard_core.sandbox.agent.client import AgentClient
from orchard_core.sandbox.agent.link import AgentLink
from orchard_core.types.sandbox import AgentEndpoint

_PAUSE_S = 0.01


async def renew_agent(
    endpoint: AgentEndpoint, token: str, *, env: Mapping[str, str] | None = None, timeout: float = 30.0
) -> AgentClient:
    """Kill everything inside and have the agent become a new one that knows `token` alone. `endpoint` holds
    its root token; `env` goes over the agent's environment, and so over that of all commands.

    Raises SandboxCreateFailed when the new one does not answer within `timeout` seconds, AgentRefused for a
    wrong token of the old one, SandboxError for a new one that is too short or an agent that cannot do it,
    SandboxGone.
    """
    link = AgentLink(endpoint)
    body = "\0".join((token, *(f"{name}={value}" for name, value in (env or {}).items())))
    client = AgentClient(replace(endpoint, token=token))
    try:
        async with asyncio.timeout(timeout):
            # An answer that is lost tells nothing: only a new agent lets the new token in.
            with contextlib.suppress(SandboxConnectionLost):
                await link.call("POST", "/v1/restart", body=body.encode())
            await _answers(client)
    except TimeoutError:
        await client.close()
        raise SandboxCreateFailed(
            f"sandbox {endpoint.sandbox_id}: its new agent did not answer within {timeout:g} s",
            hint="close the sandbox: nothing can be run in it any more",
        ) from None
    except BaseException:
        await client.close()
        raise
    finally:
        await link.close()
    return client


async def _answers(client: AgentClient) -> None:
    """The old agent refuses everybody until it has gone; then, for a moment, nobody listens."""
    while True:
        try:
            await client.health()
            return
        except (AgentRefused, SandboxConnectionLost, SandboxGone):
            await asyncio.sleep(_PAUSE_S)
