"""What Inspect's own checks do not ask: each fact on its own, as JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from inspect_ai.util._sandbox.limits import override_max_exec_output_size
from orchard_env.adapters.inspect_ai import OrchardSandboxEnvironment
from orchard_env.adapters.inspect_config import OrchardSpec, spec_of
from orchard_env.adapters.wanted import image_of, provider_for

COMPOSE = (
    "services: {default: {image: 'python:3.12', init: true, command: tail -f /dev/null, network_mode: none, "
)
IDLE = COMPOSE + "working_dir: /work, environment: [A=1], mem_limit: 1g, cpus: 2}}"
MOUNTED = COMPOSE + "volumes: ['./data:/data']}}"
BUILT = "services: {default: {build: .}}"
SEVERAL = "services: {default: {image: a}, db: {image: b}}"


async def said_by(work: Awaitable[object]) -> str:
    """The error's class and words."""
    try:
        await work
    except Exception as error:  # noqa: BLE001 - whatever it is, is told
        return f"{type(error).__name__}: {error}"
    return "nothing"


async def cancelled(kind: type[OrchardSandboxEnvironment]) -> bool:
    """Whether a sample that is cancelled while its sandbox is made, says so."""
    making = asyncio.create_task(kind.sample_init("cancelled", None, {}))
    await asyncio.sleep(0.01)
    making.cancel()
    await asyncio.wait([making])
    return making.cancelled()


async def refusals() -> dict[str, str]:
    """What is said of configurations that no sandbox can be."""
    provider, said = provider_for("inspect"), {}
    for name, text in (("mounted", MOUNTED), ("built", BUILT), ("several", SEVERAL)):
        path = Path(f"{name}-compose.yaml")
        path.write_text(text)
        said[name] = await said_by(spec_of(provider, str(path)))
    said["dockerfile"] = await said_by(spec_of(provider, "Dockerfile"))
    await provider.close()
    return said


async def main() -> None:
    """Say all."""
    kind = OrchardSandboxEnvironment
    wanted = OrchardSpec(image=image_of("host"), env={"COLOUR": "red"}, workdir="/work")
    again = kind.config_deserialize(json.loads(wanted.model_dump_json()))
    made = await kind.sample_init("behaviour", wanted, {})
    env = made["default"].as_type(kind)
    facts: dict[str, Any] = {"cancelled": await cancelled(kind), "refusals": await refusals()}
    plain = OrchardSpec.model_validate({"image": "python:3.12"})
    named = await spec_of(env.provider, str(Path("registry.example/team/image:1").absolute()))
    facts["named"] = str(named.image)
    facts["config"] = [again == wanted, len({wanted, again}), str(plain.image)]
    with override_max_exec_output_size(1000):
        facts["too much"] = await said_by(env.exec(["sh", "-c", "yes | head -c 100000"]))
    facts["timeout"] = await said_by(env.exec(["sleep", "60"], timeout=1))
    facts["user"] = await said_by(env.exec(["id"], user="nobody"))
    facts["missing"] = (await env.exec(["no-such-program"])).returncode
    facts["place"] = (await env.exec(["sh", "-c", "pwd; echo $COLOUR"])).stdout
    await env.write_file("run.sh", "#!/bin/sh\necho one\n")
    await env.exec(["chmod", "+x", "run.sh"])
    await env.write_file("run.sh", "#!/bin/sh\necho two\n")
    facts["mode kept"] = (await env.exec(["./run.sh"])).stdout
    path = Path("compose.yaml")
    path.write_text(IDLE)
    composed = await spec_of(env.provider, str(path))
    facts["composed"] = [
        str(composed.image), composed.workdir, dict(composed.env), composed.memory_mb, composed.cpu,
        composed.network.mode.value,
    ]  # fmt: skip
    await env.sandbox.close()
    facts["gone"] = await said_by(env.exec(["true"]))
    await kind.sample_cleanup("behaviour", wanted, made, True)
    await kind.sample_cleanup("behaviour", wanted, made, False)
    sys.stdout.write(json.dumps(facts) + "\n")


asyncio.run(main())
