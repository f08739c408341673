"""Real pods, through the provider: an agent that is killed, an address that is a stranger's by now."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Self

import pytest
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.pods import PodView
from orchard_env.kubernetes.provider import KubernetesProvider, open_kubernetes
from orchard_env.kubernetes.tokens import derive_token

from orchard_core import AgentClient, AgentEndpoint, AgentRefused, Sandbox, SandboxGone, SandboxSpec

from ..kubernetes.conftest import IMAGE, Kubectl
from ..kubernetes.conftest import config as config
from ..kubernetes.conftest import kubectl as kubectl
from ..kubernetes.conftest import namespace as namespace
from ..kubernetes.conftest import pod_of as pod_of
from ..kubernetes.conftest import spec as spec
from .lives import agents_of
from .orchestrators import GENEROUS_S, until
from .way import Way

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

PodOf = Callable[[str], dict[str, Any] | None]
BLOCK = 1 << 20


@asynccontextmanager
async def opened(config: KubernetesConfig, **changes: Any) -> AsyncIterator[KubernetesProvider]:
    provider = open_kubernetes(config.model_copy(update=changes))
    try:
        yield provider
    finally:
        await provider.close()


class TestKilledAgent:
    """kill -9 from outside: the kernel keeps whatever runs inside from doing that."""

    async def test_a_command_and_an_upload_end_with_the_reason_and_the_pod_goes(
        self, config: KubernetesConfig, spec: SandboxSpec, pod_of: PodOf
    ) -> None:
        async with opened(config) as provider:
            box, other = await asyncio.gather(provider.create(spec), provider.create(spec))
            agents = agents_of(box.id)
            if not agents:
                pytest.skip("the nodes' processes are not this machine's: run it on the node")
            process = await box.start("echo ran; sleep 600")
            said = process.stdout()
            assert await anext(said) == b"ran\n"
            taken, killed = asyncio.Event(), asyncio.Event()
            upload = asyncio.create_task(box.write("/workspace/file", endless(taken, killed)))
            waiting = [asyncio.create_task(process.wait()), upload]
            await asyncio.wait_for(taken.wait(), GENEROUS_S)
            for pid in agents:
                os.kill(pid, signal.SIGKILL)
            killed.set()
            for call in waiting:
                with pytest.raises(SandboxGone, match="137") as told:
                    await asyncio.wait_for(call, GENEROUS_S)
                assert told.value.by == "infrastructure"
            with pytest.raises(SandboxGone):
                raise AssertionError(f"it said more: {await anext(said)!r}")
            found = pod_of(box.id)
            assert found is not None
            assert found["status"]["containerStatuses"][0]["restartCount"] == 0
            assert agents_of(box.id) == []
            assert (await other.exec("echo on")).stdout == b"on\n"
            await asyncio.gather(box.close(), other.close())
            for name in (box.id, other.id):  # the kubelet takes its time
                found = pod_of(name)
                assert found is None or "deletionTimestamp" in found["metadata"]


async def endless(taken: asyncio.Event, killed: asyncio.Event) -> AsyncIterator[bytes]:
    """A file that is under way when its receiver is killed, and goes on."""
    yield bytes(BLOCK)
    taken.set()
    await killed.wait()
    while True:
        yield bytes(BLOCK)
        await asyncio.sleep(0)


@pytest.fixture
def way(kubectl: Kubectl) -> Iterator[Way]:
    """A provider's, which a test cuts."""
    made = Way(kubectl)
    yield made
    made.close()


class TestStrangersAddress:
    """Pods in their node's own network have its address, one after the other: what a cluster does by and by
    with the addresses of pods. The provider does not hear of it, its API server is away."""

    async def test_what_takes_a_pods_address_learns_no_token_and_no_command(
        self,
        config: KubernetesConfig,
        spec: SandboxSpec,
        namespace: str,
        kubectl: Kubectl,
        way: Way,
        tmp_path: Path,
    ) -> None:
        on_node: dict[str, Any] = {
            "agent_port": 20_000 + secrets.randbelow(10_000),
            "pod_patch": {"spec": {"hostNetwork": True}},
        }
        async with opened(config, kubeconfig=way.kubeconfig(tmp_path), **on_node) as provider:
            box = await provider.create(spec)
            session = await provider.session()
            pod = session.pods.get(box.id)
            assert pod is not None
            root = derive_token(session.seed, box.id, pod.uid)
            assert (await box.exec("echo mine")).stdout == b"mine\n"
            with way.away():
                await ends(pod, root, on_node["agent_port"])
                async with opened(config, **on_node) as neighbours, await neighbours.create(spec) as stranger:
                    await finds_a_stranger(box)
                    assert (await stranger.exec("ls /workspace")).stdout == b""
                with Listener(kubectl, namespace, on_node["agent_port"]) as listener:
                    await asyncio.to_thread(listener.takes_the_place_of, pod)
                    await finds_a_stranger(box)
                    said = await asyncio.to_thread(listener.heard)
                    assert "/v1/proof" in said
                    for secret in (root, "uthorization", "touch"):
                        assert secret not in said
            async with asyncio.timeout(GENEROUS_S):
                while await box.alive():
                    await asyncio.sleep(0.1)
            with pytest.raises(SandboxGone, match=r"deleted|ended"):
                await box.exec("true")


async def ends(pod: PodView, token: str, port: int) -> None:
    """Let its agent end, and its container with it."""
    there = AgentEndpoint(url=f"http://{pod.ip}:{port}", token=token, sandbox_id=pod.name)
    async with AgentClient(there) as agent:
        await agent.shutdown()


async def finds_a_stranger(box: Sandbox) -> None:
    """Nothing of what is asked of it is told to who is there. Between two answers nobody is."""
    with pytest.raises((AgentRefused, SandboxGone)):
        await box.exec("touch /workspace/mine")
    with pytest.raises((AgentRefused, SandboxGone)):
        await box.write("/workspace/mine", b"touch")


FORGED = "HTTP/1.1 200 OK\\r\\nContent-Length: 64\\r\\n\\r\\n" + "0" * 64


class Listener:
    """A pod in its node's network that answers everything with the same words."""

    def __init__(self, kubectl: Kubectl, namespace: str, port: int) -> None:
        self._kubectl, self._at, self._port = kubectl, ("-n", namespace), port

    def takes_the_place_of(self, pod: PodView) -> None:
        """Delete a pod, and listen where it did."""
        self._kubectl(*self._at, "delete", "pod", pod.name, "--wait=false")
        script = f"while :; do printf '{FORGED}' | nc -l -p {self._port} || sleep 0.1; done"
        container = {"name": "nc", "image": IMAGE, "command": ["sh", "-c", script]}
        there = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "listener"},
            "spec": {
                "hostNetwork": True,
                "terminationGracePeriodSeconds": 0,
                "nodeName": pod.node,
                "containers": [container],
            },
        }
        self._kubectl(*self._at, "apply", "-f", "-", text=json.dumps(there))
        until(
            lambda: _first_words(pod.ip, self._port).startswith(b"HTTP/1.1 200"), "a stranger answers there"
        )

    def heard(self) -> str:
        """All of it."""
        return self._kubectl(*self._at, "logs", "listener")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._kubectl(*self._at, "delete", "pod", "listener", "--ignore-not-found", "--wait=false")


def _first_words(ip: str, port: int) -> bytes:
    with suppress(OSError), socket.create_connection((ip, port), 1.0) as peer:
        return peer.recv(64)
    return b""
