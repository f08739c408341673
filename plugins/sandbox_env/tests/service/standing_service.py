"""`python standing_service.py ROOT`: a service over a directory of standing agents, to be killed by tests."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from orchard_env.service.defaults import NoAudit, NoMeters, OpenAdmission, OpenTenancy
from orchard_env.service.fleet import Fleet
from orchard_env.service.services import Services
from orchard_env.service.serving import Address, serve
from orchard_env.service.settings import ServiceSettings
from standing_agents import standing_provider  # type: ignore[import-not-found]


def _ready(url: str) -> None:
    sys.stdout.write(url + "\n")
    sys.stdout.flush()


async def main(root: Path) -> None:
    """Serve until told to end."""
    settings = ServiceSettings(drain_s=5.0)
    services = Services(
        fleet=Fleet(standing_provider(root), settings=settings),
        tenancy=OpenTenancy(),
        admission=OpenAdmission(),
        audit=NoAudit(),
        meters=NoMeters(),
        settings=settings,
    )
    await serve(services, Address(port=0), ready=_ready)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
