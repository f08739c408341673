"""`openenv_steps.py PROJECT PORT`: steps an environment that our providers serve."""

from __future__ import annotations

import asyncio
import json
import sys

from openenv.core.generic_client import GenericEnvClient
from orchard_env.adapters.openenv import OrchardProvider, OrchardRuntimeProvider


async def stepped(url: str, provider: object) -> list[object]:
    """An episode: every total, whether it was done, and the state at the end."""
    async with GenericEnvClient(url, provider=provider) as env:
        said: list[object] = [(await env.reset()).observation["total"]]
        for amount in (40, 2):
            result = await env.step({"amount": amount})
            said += [result.observation["total"], result.done]
        return [*said, (await env.state())["step_count"]]


def failure(provider: OrchardProvider, image: str) -> str:
    """What is said of a server that does not come up."""
    try:
        provider.wait_for_ready(provider.start_container(image), timeout_s=60)
    except RuntimeError as error:
        return str(error)
    finally:
        provider.stop_container()
        provider.stop_container()
    return "nothing"


async def main(project: str, port: str) -> None:
    """Say how it went. One server is not stopped: the end of the process does that."""
    told: dict[str, object] = {}
    runtime = OrchardRuntimeProvider(project, image="host", network="host")
    url = runtime.start(port=int(port), env_vars={"PATH": f"{sys.prefix}/bin:/usr/bin:/bin"})
    runtime.wait_for_ready(timeout_s=120)
    told["episode"] = await stepped(url, runtime)
    told["no app"] = failure(OrchardProvider(network="host"), "host")
    told["ended"] = failure(OrchardProvider(network="host", command="echo broken; exit 3"), "host")
    told["no image"] = failure(OrchardProvider(network="host"), "no/such:image")
    kept = OrchardProvider(network="host", command="sleep 1000")
    kept.start_container("host", env_vars={"A": "1"})
    sys.stdout.write(json.dumps(told) + "\n")


asyncio.run(main(*sys.argv[1:]))
