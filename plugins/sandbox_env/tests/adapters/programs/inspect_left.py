"""Makes a sample's sandbox, says its id, and waits to be killed."""

from __future__ import annotations

import asyncio
import sys

from orchard_env.adapters.inspect_ai import OrchardSandboxEnvironment


async def main() -> None:
    """Never ends."""
    made = await OrchardSandboxEnvironment.sample_init("left", None, {})
    sys.stdout.write(made["default"].as_type(OrchardSandboxEnvironment).sandbox.id + "\n")
    sys.stdout.flush()
    await asyncio.sleep(3600)


asyncio.run(main())
