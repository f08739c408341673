"""`python replica_service.py ROOT REDIS NAME AUDIT`: one replica of a team, to be killed by tests."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from orchard_env.service.assembly import assembled
from orchard_env.service.log import log_to_stderr
from orchard_env.service.serving import Address, serve
from orchard_env.service.settings import ServiceSettings
from orchard_env.service.team_settings import team_settings
from standing_agents import standing_provider  # type: ignore[import-not-found]


def _ready(url: str) -> None:
    sys.stdout.write(url + "\n")
    sys.stdout.flush()


async def main(root: str, redis: str, name: str, audit: str) -> None:
    """Serve until told to end."""
    told = {"replica": name, "leader_s": 2.0, "replica_s": 4.0, "audit": {"path": audit, "commands": "cut"}}
    shared = team_settings(told, redis=redis)
    settings = ServiceSettings(drain_s=5.0, heartbeat_s=3.0)
    log_to_stderr("debug")
    async with assembled(standing_provider(Path(root)), settings, shared=shared) as services:
        await serve(services, Address(port=0), ready=_ready)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
