"""A node's container runtime is killed, with and without what holds the containers, while sandboxes are made,
used and deleted, and comes back. Only ever that of this project's own cluster (tools/cluster)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from orchard_env.kubernetes.api import ClusterApi
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.provider import KubernetesProvider, open_kubernetes
from orchard_env.kubernetes.resources import PODS

from orchard_core import ImageRef, Sandbox, SandboxError, SandboxGone, SandboxSpec

from ..kubernetes.clusters import real_cluster
from ..kubernetes.conftest import IMAGE
from .lives import agents_of

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

TOOL = Path(__file__).parents[4] / "tools/cluster"
SPEC = SandboxSpec(image=ImageRef(kind="oci", value=IMAGE), cpu=0.1, memory_mb=64)
LONG_S = 180.0
BLOCK = 1 << 20


def tool(*words: str) -> subprocess.CompletedProcess[str]:
    """What it says."""
    return subprocess.run([sys.executable, str(TOOL), *words], capture_output=True, text=True, check=False)


@pytest.fixture
def kubeconfig() -> Iterator[str]:
    """Of the project's own cluster, whose runtime runs again in the end."""
    path = tool("env").stdout.strip().partition("=")[2]
    if tool("status").returncode != 0:
        pytest.skip("only the project's own cluster's runtime is killed: python tools/cluster up")
    shared = os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1") != "1"
    if shared and os.path.realpath(os.environ.get("KUBECONFIG", "")) == os.path.realpath(path):
        pytest.skip("other cases use that cluster at the same time: run this file alone, with -n 0")
    yield path
    assert tool("runtime", "start").returncode == 0


class Scene:
    """One sandbox in use, others coming and going, as the runtime dies."""

    def __init__(self, provider: KubernetesProvider, api: ClusterApi) -> None:
        self.provider, self.api = provider, api
        self.names: set[str] = set()
        self._goes_on = asyncio.Event()
        self._taken = asyncio.Event()

    async def make(self, name: str) -> Sandbox:
        """A sandbox of that name."""
        self.names.add(name)
        return await self.provider.create(SPEC.model_copy(update={"name": name}))

    async def kill(self, how: str) -> None:
        """Once an upload is under way."""
        await asyncio.wait_for(self._taken.wait(), LONG_S)
        done = await asyncio.to_thread(tool, "runtime", how)
        assert done.returncode == 0, done.stderr

    async def restart(self) -> None:
        """The runtime, and let the upload go on."""
        self._goes_on.set()
        done = await asyncio.to_thread(tool, "runtime", "start")
        assert done.returncode == 0, done.stderr

    async def halves(self) -> AsyncIterator[bytes]:
        """A file, of which one half is sent before."""
        yield bytes(BLOCK)
        self._taken.set()
        await self._goes_on.wait()
        yield bytes(BLOCK)

    async def check_nothing_left(self) -> None:
        """Every pod is gone or going, and no agent runs."""
        await self.provider.reap()
        pods = [one["metadata"] for one in await self.api.list(PODS)]
        assert [one["name"] for one in pods if "deletionTimestamp" not in one] == []
        async with asyncio.timeout(LONG_S):
            while any(agents_of(name) for name in self.names):
                await asyncio.sleep(0.1)


@pytest.fixture
async def scene(kubeconfig: str) -> AsyncIterator[Scene]:
    async with real_cluster(kubeconfig) as api:
        config = KubernetesConfig(kubeconfig=kubeconfig, namespace=api.namespace, create_timeout_s=LONG_S)
        provider = open_kubernetes(config)
        try:
            yield Scene(provider, api)
        finally:
            await provider.close()


async def test_a_runtime_that_dies_alone_holds_up_what_comes_and_harms_nothing_that_runs(
    scene: Scene,
) -> None:
    box, doomed = await asyncio.gather(scene.make("box"), scene.make("doomed"))
    process = await box.start("echo ran >> log; until [ -e go ]; do sleep 0.1; done; echo went")
    upload = asyncio.create_task(box.write("/workspace/file", scene.halves()))
    coming = asyncio.create_task(scene.make("coming"))
    await scene.kill("kill")
    late = asyncio.create_task(scene.make("late"))
    going = asyncio.create_task(doomed.close())
    assert (await box.exec("echo alive")).stdout == b"alive\n"
    await scene.restart()
    for making in (coming, late):
        made = await asyncio.wait_for(making, LONG_S)
        assert (await made.exec("echo hi")).stdout == b"hi\n"
    await asyncio.wait_for(going, LONG_S)
    await upload
    await box.exec("touch go")
    ended = await process.wait()
    assert (ended.exit_code, ended.stdout) == (0, b"went\n")
    assert (await box.exec("cat log; wc -c < file")).stdout == f"ran\n{2 * BLOCK}\n".encode()
    await asyncio.gather(box.close(), coming.result().close(), late.result().close())
    await scene.check_nothing_left()


async def test_a_runtime_that_dies_with_its_containers_is_told_of_as_no_doing_of_theirs(scene: Scene) -> None:
    box, doomed = await asyncio.gather(scene.make("box"), scene.make("doomed"))
    process = await box.start("echo ran; sleep 600")
    upload = asyncio.create_task(box.write("/workspace/file", scene.halves()))
    coming = asyncio.create_task(scene.make("coming"))
    await scene.kill("kill-all")
    late = asyncio.create_task(scene.make("late"))
    going = asyncio.create_task(doomed.close())
    waiting = asyncio.create_task(process.wait())
    await scene.restart()
    with pytest.raises(SandboxGone) as told:
        await asyncio.wait_for(waiting, LONG_S)
    assert told.value.by == "infrastructure"
    with pytest.raises(SandboxGone):
        await box.exec("true")
    await asyncio.gather(upload, return_exceptions=True)  # it may have been whole before its container died
    await asyncio.wait_for(going, LONG_S)
    try:  # it was being set up, and is lost by type or set up once more
        made = [await asyncio.wait_for(coming, LONG_S)]
    except SandboxError:
        made = []
    made.append(await asyncio.wait_for(late, LONG_S))
    for sandbox in made:
        assert (await sandbox.exec("echo hi")).stdout == b"hi\n"
    await asyncio.gather(box.close(), *(sandbox.close() for sandbox in made))
    await scene.check_nothing_left()
