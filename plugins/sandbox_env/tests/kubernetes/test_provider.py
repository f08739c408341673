"""What is particular to pods, on a real cluster: what it costs, how it fails, who owns it."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from orchard_env.kubernetes import labels
from orchard_env.kubernetes.config import Escalation, KubernetesConfig
from orchard_env.kubernetes.provider import KubernetesProvider, open_kubernetes

from orchard_core import (
    CreationStep,
    ImagePullFailed,
    ImageRef,
    Network,
    NetworkMode,
    QuotaExceeded,
    Sandbox,
    SandboxCreateFailed,
    SandboxExists,
    SandboxGone,
    SandboxOutOfMemory,
    SandboxSpec,
    Unschedulable,
    creation_steps,
)

from .conftest import IMAGE, Kubectl

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

PodOf = Callable[[str], dict[str, Any] | None]


@asynccontextmanager
async def opened(config: KubernetesConfig, **changes: Any) -> AsyncIterator[KubernetesProvider]:
    provider = open_kubernetes(config.model_copy(update=changes))
    try:
        yield provider
    finally:
        await provider.close()


async def test_a_life_costs_two_calls(config: KubernetesConfig, spec: SandboxSpec) -> None:
    async with opened(config) as provider:
        session = await provider.session()
        before = dict(session.api.calls)
        async with await provider.create(spec) as sandbox:
            assert (await sandbox.exec("echo hi")).stdout == b"hi\n"
        spent = {call: n - before.get(call, 0) for call, n in session.api.calls.items()}
        lasting = {"watch pods", "watch events", "list pods", "list events", "patch leases", "list leases"}
        assert {call: n for call, n in spent.items() if n and call not in lasting} == {
            "create pods": 1,
            "delete pods": 1,
        }


@pytest.mark.parametrize("registry", ["registry.invalid", "127.0.0.1:1"])
async def test_an_image_that_is_not_there_is_told_by_type_and_without_a_grace(
    config: KubernetesConfig, registry: str
) -> None:
    """No such host, and one that refuses: the kubelet's own next try is not waited for."""
    wanted = SandboxSpec(image=ImageRef(kind="oci", value=f"{registry}/none:1"))
    async with opened(config, pull_grace_s=1e6) as provider:
        with pytest.raises(ImagePullFailed, match=rf"{registry}/none:1.*(no such host|refused)"):
            await provider.create(wanted)
        assert await provider.standing() == []


async def test_a_quota_is_told_in_the_clusters_words_and_holds_nobody_up_once_it_is_gone(
    config: KubernetesConfig, spec: SandboxSpec, kubectl: Kubectl, namespace: str
) -> None:
    async with opened(config) as provider:
        kubectl("-n", namespace, "create", "quota", "few", "--hard=pods=0")
        try:
            with pytest.raises(QuotaExceeded, match=r"exceeded quota: few, requested: pods=1, used: pods="):
                await provider.create(spec)
        finally:
            kubectl("-n", namespace, "delete", "quota", "few")
        async with await _create_when_allowed(provider, spec) as sandbox:
            assert (await sandbox.exec("echo hi")).stdout == b"hi\n"


async def _create_when_allowed(provider: KubernetesProvider, spec: SandboxSpec) -> Sandbox:
    """A server hears of a quota's end a moment later."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await provider.create(spec)
            except QuotaExceeded:
                await asyncio.sleep(0.1)


async def test_what_a_node_needs_until_the_container_begins_is_a_phase_of_its_own(
    config: KubernetesConfig, spec: SandboxSpec, kubectl: Kubectl, namespace: str
) -> None:
    """Such as a pull. Here the pod waits, once it has an address, for a second and more."""
    held = {
        "name": "held",
        "image": IMAGE,
        "command": ["sh", "-c", "until [ -e /tmp/go ]; do sleep 0.1; done"],
    }
    async with opened(config, pod_patch={"spec": {"initContainers": [held]}}) as provider:
        with creation_steps() as steps:
            making = asyncio.create_task(provider.create(spec.model_copy(update={"name": "waits"})))
            async with asyncio.timeout(60):
                while CreationStep.SCHEDULED not in steps:
                    await asyncio.sleep(0.05)
            await asyncio.sleep(1)
            let_go = ("-n", namespace, "exec", "waits", "-c", "held", "--", "touch", "/tmp/go")
            await asyncio.to_thread(kubectl, *let_go)
            async with await making as sandbox:
                assert (await sandbox.exec("echo hi")).stdout == b"hi\n"
        assert steps[CreationStep.PULLED] - steps[CreationStep.SCHEDULED] >= 1
        assert [*steps] == ["placed", "scheduled", "pulled", "answered", "furnished"]
        assert [*steps.values()] == sorted(steps.values())


async def test_a_pod_that_fits_nowhere_is_told_by_type(config: KubernetesConfig, spec: SandboxSpec) -> None:
    async with opened(config, schedule_grace_s=1) as provider:
        with pytest.raises(Unschedulable, match=r"(?i)cpu"):
            await provider.create(spec.model_copy(update={"cpu": 4000.0}))
        assert await provider.standing() == []


async def test_too_little_memory_to_begin_is_told_and_mended_where_asked(
    config: KubernetesConfig, spec: SandboxSpec
) -> None:
    small = spec.model_copy(update={"memory_mb": 1})
    async with opened(config) as provider:
        with pytest.raises(SandboxCreateFailed, match="1 MiB do not suffice"):
            await provider.create(small)
        assert await provider.standing() == []
    larger = Escalation(factor=6, times=2)
    async with opened(config, escalation=larger) as provider, await provider.create(small) as sandbox:
        assert (await sandbox.exec("echo hi")).stdout == b"hi\n"


async def test_a_pod_that_is_deleted_from_outside_is_told_as_such(
    config: KubernetesConfig, spec: SandboxSpec, kubectl: Kubectl, namespace: str
) -> None:
    async with opened(config) as provider:
        sandbox = await provider.create(spec)
        running = asyncio.create_task(sandbox.exec("sleep 300"))
        await asyncio.to_thread(kubectl, "-n", namespace, "delete", "pod", sandbox.id, "--wait=false")
        with pytest.raises(SandboxGone, match="deleted"):
            await running
        with pytest.raises(SandboxGone):
            await sandbox.exec("echo late")


async def test_an_agent_that_ran_out_of_memory_is_told_by_type(
    config: KubernetesConfig, spec: SandboxSpec
) -> None:
    # Files in memory fill it nearly, and programs that are each smaller than the agent do the rest.
    eater = (
        "dd if=/dev/zero of=/dev/shm/big bs=64k count=1000; for i in $(seq 2000); do sleep 1000 & done; wait"
    )
    async with opened(config) as provider, await provider.create(spec) as sandbox:
        with pytest.raises(SandboxOutOfMemory):
            await sandbox.exec(eater)


@pytest.mark.parametrize(("user", "uid"), [("1000:2000", b"1000\n2000\n"), ("nobody", b"65534\n65534\n")])
async def test_commands_run_as_the_user_asked_for(
    config: KubernetesConfig, spec: SandboxSpec, user: str, uid: bytes
) -> None:
    async with (
        opened(config) as provider,
        await provider.create(spec.model_copy(update={"user": user})) as sandbox,
    ):
        assert (await sandbox.exec("id -u; id -g")).stdout == uid
        assert (await sandbox.exec("touch file && pwd")).stdout == b"/workspace\n"
        assert not (await sandbox.exec("kill -9 1; cat /proc/1/environ /proc/1/mem")).stdout
        assert await sandbox.alive()


async def test_a_strangers_pod_of_the_name_is_left_alone(
    config: KubernetesConfig, spec: SandboxSpec, kubectl: Kubectl, namespace: str, pod_of: PodOf
) -> None:
    kubectl("-n", namespace, "run", "taken", f"--image={IMAGE}", "--", "sleep", "300")
    async with opened(config) as provider:
        with pytest.raises(SandboxExists):
            await provider.create(spec.model_copy(update={"name": "taken"}))
        assert "taken" not in [one.id for one in await provider.standing()]
        with pytest.raises(SandboxGone):
            await provider.adopt("taken")
    found = pod_of("taken")
    assert found is not None
    assert "deletionTimestamp" not in found["metadata"]
    kubectl("-n", namespace, "delete", "pod", "taken", "--wait=false")


async def test_an_agent_that_was_started_anew_is_adopted_by_its_new_token(
    config: KubernetesConfig, spec: SandboxSpec, pod_of: PodOf
) -> None:
    async with opened(config) as first, opened(config) as second:
        sandbox = await first.create(spec)
        await sandbox.write("/workspace/file", b"kept")
        await sandbox.reset_processes()
        await sandbox.reset_processes()
        await first.release()
        adopted = await second.adopt(sandbox.id)
        assert await adopted.read_bytes("/workspace/file") == b"kept"
        found = pod_of(sandbox.id)
        assert found is not None
        assert found["metadata"]["annotations"][labels.GENERATION] == "2"
        assert found["metadata"]["labels"][labels.DRIVER] == (await second.session()).driver


async def test_a_restart_that_was_cut_short_is_adopted_too(
    config: KubernetesConfig, spec: SandboxSpec, kubectl: Kubectl, namespace: str
) -> None:
    """The annotation is written first: a driver that died then left an agent with the token before."""
    async with opened(config) as first, opened(config) as second:
        sandbox = await first.create(spec)
        kubectl("-n", namespace, "annotate", "pod", sandbox.id, f"{labels.GENERATION}=1")
        await first.release()
        adopted = await second.adopt(sandbox.id)
        assert (await adopted.exec("echo hi")).stdout == b"hi\n"
        await adopted.reset_processes()
        assert (await adopted.exec("echo on")).stdout == b"on\n"


async def test_the_way_out_refuses_what_is_not_public_and_outlives_a_restart(
    config: KubernetesConfig, spec: SandboxSpec
) -> None:
    wanted = spec.model_copy(update={"network": Network(mode=NetworkMode.OPEN)})
    look = 'printf "CONNECT $1:80 HTTP/1.1\\r\\nHost: $1\\r\\n\\r\\n" | nc -w 10 127.0.0.1 3128 | head -1'
    async with opened(config) as provider, await provider.create(wanted) as sandbox:
        for _ in range(2):
            for address in ("169.254.169.254", "10.96.0.1", "127.0.0.1", "[::1]"):
                said = await sandbox.exec(["sh", "-c", look, "sh", address], timeout=30)
                assert b" 403 " in said.stdout, said.text
            await sandbox.reset_processes()


async def test_a_cancelled_create_leaves_no_pod(
    config: KubernetesConfig, spec: SandboxSpec, pod_of: PodOf
) -> None:
    async with opened(config) as provider:
        await provider.session()
        for pause in (0.0, 0.005, 0.05, 0.5):
            name = f"cancelled-{int(pause * 1000)}"
            making = asyncio.create_task(provider.create(spec.model_copy(update={"name": name})))
            await asyncio.sleep(pause)
            making.cancel()
            with pytest.raises(asyncio.CancelledError):
                await making
            found = pod_of(name)
            assert found is None or "deletionTimestamp" in found["metadata"]


DRIVER = """
import asyncio, sys
from orchard_core import SandboxSpec
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.provider import open_kubernetes

async def main():
    provider = open_kubernetes(KubernetesConfig.model_validate_json(sys.argv[1]))
    sandbox = await provider.create(SandboxSpec.model_validate_json(sys.argv[2]))
    print(sandbox.id, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


async def test_a_killed_drivers_sandboxes_are_reaped_and_a_living_ones_are_not(
    config: KubernetesConfig, spec: SandboxSpec, pod_of: PodOf
) -> None:
    quick = config.model_copy(update={"lease_s": 3.0, "reap": False})
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-c", DRIVER, quick.model_dump_json(), spec.model_dump_json(),
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert program.stdout is not None
    left = (await program.stdout.readline()).decode().strip()
    async with opened(quick) as provider, await provider.create(spec) as mine:
        program.send_signal(signal.SIGKILL)
        await program.wait()
        removed: list[str] = []
        async with asyncio.timeout(60):
            while left not in removed:
                removed += await provider.reap()
                await asyncio.sleep(0.5)
        assert removed == [left]
        found = pod_of(left)
        assert found is None or "deletionTimestamp" in found["metadata"]
        assert (await mine.exec("echo hi")).stdout == b"hi\n"


async def test_the_policy_of_the_namespace_is_made_and_kept_up_to_date(
    config: KubernetesConfig, kubectl: Kubectl, namespace: str
) -> None:
    async def policy(**changes: Any) -> dict[str, Any]:
        async with opened(config, **changes) as provider:
            await provider.session()
        told = kubectl("-n", namespace, "get", "networkpolicy", "orchard-sandboxes", "-o", "json")
        found: dict[str, Any] = json.loads(told)
        return found

    first = await policy()
    assert first["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert not first["spec"].get("egress")
    (rule,) = first["spec"]["ingress"]
    assert [port["port"] for port in rule["ports"]] == [config.agent_port]
    assert (await policy())["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    changed = await policy(driver_cidrs=("192.0.2.0/24",))
    assert {"ipBlock": {"cidr": "192.0.2.0/24"}} in changed["spec"]["ingress"][0]["from"]
