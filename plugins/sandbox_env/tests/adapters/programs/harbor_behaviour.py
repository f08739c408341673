"""What Harbor's environments promise besides a good trial: each fact on its own, as JSON."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from harbor.models.task.config import EnvironmentConfig, NetworkPolicy
from harbor.models.trial.paths import TrialPaths
from orchard_env.adapters.harbor import OrchardEnvironment

BYTES = bytes(range(256)) * 4096 * 5


def environment(folder: str, **fields: Any) -> OrchardEnvironment:
    """One that was not started."""
    place = Path(folder)
    place.mkdir(exist_ok=True)
    return OrchardEnvironment(
        environment_dir=place,
        environment_name="behaviour",
        session_id="behaviour__env",
        trial_paths=TrialPaths(trial_dir=Path("trial")),
        task_env_config=EnvironmentConfig(**fields),
        network_policy=NetworkPolicy.model_validate({"network_mode": "no-network"}),
        persistent_env={"COLOUR": "red"},
    )


def refusal(make: Callable[[], object]) -> str:
    """What is said of it."""
    try:
        make()
    except Exception as error:  # noqa: BLE001 - whatever it is, is told
        return f"{type(error).__name__}: {error}"
    return "nothing"


async def refused(work: Awaitable[object]) -> str:
    """Likewise."""
    try:
        await work
    except Exception as error:  # noqa: BLE001 - likewise
        return f"{type(error).__name__}: {error}"
    return "nothing"


def refusals() -> dict[str, str]:
    """Tasks that would have to be built."""
    for folder, file in (("built", "Dockerfile"), ("several", "docker-compose.yaml")):
        Path(folder).mkdir()
        (Path(folder) / file).write_text("FROM scratch\n")
    return {
        "dockerfile": refusal(lambda: environment("built")),
        "compose": refusal(lambda: environment("several", docker_image="host")),
        "nothing": refusal(lambda: environment("empty")),
    }


async def files(env: OrchardEnvironment) -> list[object]:
    """A tree and a large binary file there and back."""
    tree = Path("tree")
    (tree / "empty").mkdir(parents=True)
    (tree / "odd.bin").write_bytes(BYTES)
    (tree / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (tree / "run.sh").chmod(0o755)
    (tree / "link").symlink_to("odd.bin")
    await env.upload_dir(tree, "/data/tree")
    await env.upload_file(tree / "run.sh", "/data/alone.sh")
    ran = await env.exec("/data/tree/run.sh && /data/alone.sh && readlink /data/tree/link")
    await env.download_dir("/data/tree", "back")
    await env.download_file("/data/tree/odd.bin", "deep/odd.bin")
    same = Path("back/odd.bin").read_bytes() == Path("deep/odd.bin").read_bytes() == BYTES
    return [
        ran.stdout,
        same,
        sorted(one.name for one in Path("back").iterdir()),
        os.access("back/run.sh", os.X_OK),
    ]


async def main() -> None:
    """Say all."""
    env = environment("plain", docker_image="host", workdir="/work", memory_mb=512, cpus=0.5)
    facts: dict[str, Any] = {"refusals": refusals()}
    facts["built by force"] = await refused(environment("built", docker_image="host").start(force_build=True))
    starting = asyncio.create_task(environment("other", docker_image="host").start(force_build=False))
    await asyncio.sleep(0.01)
    starting.cancel()
    await asyncio.wait([starting])
    await env.start(force_build=False)
    facts["cancelled"] = starting.cancelled()
    facts["place"] = (await env.exec("pwd; echo $COLOUR $SIZE $0", env={"SIZE": "big"})).stdout
    late = await env.exec("echo begun; sleep 60", timeout_sec=1)
    facts["late"] = [late.stdout, late.stderr, late.return_code]
    facts["user"] = (await env.exec("id", user="agent")).return_code
    facts["root"] = (await env.exec("echo fine", user="root")).stdout
    facts["nowhere"] = (await env.exec("id", cwd="/no/such/place")).return_code
    facts["files"] = await files(env)
    await env.stop(delete=True)
    await env.stop(delete=True)
    facts["stopped"] = await refused(env.exec("id"))
    sys.stdout.write(json.dumps(facts) + "\n")


asyncio.run(main())
