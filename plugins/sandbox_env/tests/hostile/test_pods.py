"""A hostile program in a pod, as the container's root, on a real cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.provider import KubernetesProvider, open_kubernetes

from orchard_core import Sandbox, SandboxSpec

from ..kubernetes.conftest import config as config
from ..kubernetes.conftest import kubectl as kubectl
from ..kubernetes.conftest import namespace as namespace
from ..kubernetes.conftest import spec as spec

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

ATTEMPTS = (
    "head -c 1 /proc/1/mem", "head -c 1 /proc/1/environ", "readlink /proc/1/fd/3", "ls /proc/1/root/",
    "ls /proc/1/cwd/", "head -c 1 /proc/1/maps", "chroot /proc/1/root true", "mount -t tmpfs none /mnt",
    "umount /proc/sys", "mknod /tmp/disk b 8 0", "echo 1 > /proc/sys/kernel/panic", "test -w /proc/kcore",
    "echo x > /sys/kernel/uevent_helper", "hostname other", "unshare -m true", "unshare -U true",
    "nsenter -t 1 -m true", "ping -c 1 -w 1 127.0.0.1", "echo x > /.orchard/bin/orchard-agent", "ls /seed",
    "ls /var/run/secrets/kubernetes.io", "cat /.orchard/token/token", "dmesg", "nslookup example.org",
    "nslookup kubernetes.default.svc", "nslookup metadata.google.internal",
)  # fmt: skip


@asynccontextmanager
async def pods(
    config: KubernetesConfig, spec: SandboxSpec, count: int
) -> AsyncIterator[tuple[KubernetesProvider, list[Sandbox]]]:
    provider = open_kubernetes(config)
    try:
        yield provider, [await provider.create(spec) for _ in range(count)]
    finally:
        await provider.close()


async def test_a_pod_shows_nothing_of_its_node_its_agent_or_the_cluster(
    config: KubernetesConfig, spec: SandboxSpec
) -> None:
    async with pods(config, spec, 1) as (_, (sandbox,)):
        for attempt in ATTEMPTS:
            assert not (await sandbox.exec(attempt, timeout=60)).ok, attempt
        await sandbox.exec("kill -9 1; kill -STOP 1; for n in $(seq 1 64); do kill -$n 1; done; kill -9 -1")
        look = "find / -xdev \\( -name '*token*' -o -name '*.sock' -o -name '*.kubeconfig' \\) -type f; env"
        seen = (await sandbox.exec(look)).stdout_text
        assert "token" not in seen.lower()
        assert await sandbox.alive()
        await sandbox.close()


async def test_nobody_takes_the_agents_place_and_it_outlives_its_own_program(
    config: KubernetesConfig, spec: SandboxSpec
) -> None:
    """Who listened there in its stead would be sent its token. The agent is the container's first process:
    the port is free when the container is gone."""
    async with pods(config, spec, 1) as (_, (sandbox,)):
        taking = await sandbox.exec(f"nc -l -p {config.agent_port}", timeout=60)
        assert not taking.ok
        assert "in use" in taking.stderr_text
        lurking = await sandbox.start(f"while :; do nc -l -p {config.agent_port} 2>/dev/null; done")
        fake = "rm /.orchard/bin/orchard-agent && cp /bin/sh /.orchard/bin/orchard-agent"
        assert (await sandbox.exec(fake)).ok
        await sandbox.reset_processes()
        assert (await sandbox.exec("ps; echo on")).stdout_text.endswith("on\n")
        assert b"nc -l" not in (await sandbox.exec("ps")).stdout
        del lurking
        await sandbox.close()


async def test_a_stolen_token_and_a_guessed_id_open_no_other_agent(
    config: KubernetesConfig, spec: SandboxSpec
) -> None:
    """Where the CNI enforces the namespace's policy nothing is heard; where not, the agent itself refuses."""
    async with pods(config, spec, 2) as (provider, (one, two)):
        session = await provider.session()
        there = session.pods.get(two.id)
        assert there is not None
        stolen, good = (await one.endpoint()).token, (await two.endpoint()).token
        assert " 200 " in await asked(two, "127.0.0.1", good, two.id), (
            "the question is one that agents answer"
        )
        for token in (stolen, "", "x" * 64, "0" * 4000):
            for sandbox_id in (one.id, two.id):
                assert " 200 " not in await asked(one, there.ip, token, sandbox_id)
        await one.close()
        await two.close()


async def asked(sandbox: Sandbox, host: str, token: str, sandbox_id: str) -> str:
    """The first line that an agent answers to a program in a sandbox."""
    head = f"GET /v1/health HTTP/1.1\\r\\nHost: x\\r\\nAuthorization: Bearer {token}\\r\\n"
    head += f"X-Orchard-Sandbox: {sandbox_id}\\r\\nConnection: close\\r\\n\\r\\n"
    told = await sandbox.exec(f"printf '{head}' | nc -w 3 {host} 7777", timeout=60)
    return told.stdout_text.split("\r\n")[0]
