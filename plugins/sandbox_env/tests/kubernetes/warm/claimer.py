"""A driver in a process of its own: takes sandboxes when it is told to, and says which pods it got."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.provider import open_kubernetes

from orchard_core import SandboxSpec


async def main(config: KubernetesConfig, spec: SandboxSpec, count: int) -> None:
    provider = open_kubernetes(config)
    await provider.session()
    _say({"ready": provider.pools()[0].ready})
    await asyncio.to_thread(sys.stdin.readline)
    made = await asyncio.gather(*(provider.create(spec) for _ in range(count)))
    hosts = [(await one.exec("hostname")).text.strip() for one in made]
    _say({"hosts": hosts, "hits": provider.pools()[0].hits})
    await asyncio.to_thread(sys.stdin.readline)
    await asyncio.gather(*(one.close() for one in made))
    await provider.close()


def _say(what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(
        main(
            KubernetesConfig.model_validate_json(sys.argv[1]),
            SandboxSpec.model_validate_json(sys.argv[2]),
            int(sys.argv[3]),
        )
    )
