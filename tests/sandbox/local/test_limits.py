"""Limits: what holds them, what is refused, what a command sees when it meets one."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path

import pytest

from orchard_core.errors import SandboxGone, SandboxUnsupported
from orchard_core.sandbox.agent_sandbox import AgentSandbox
from orchard_core.sandbox.local.cgroups import CgroupPlan, Slot, find_plan
from orchard_core.sandbox.local.config import LocalConfig
from orchard_core.sandbox.local.limits import enforcers, plan_limits
from orchard_core.sandbox.local.provider import LocalProvider
from orchard_core.types.sandbox import SandboxSpec


async def test_out_of_memory_is_137_and_the_sandbox_lives(provider: LocalProvider) -> None:
    able = await provider.capabilities()
    if not able.limits["memory"].startswith("cgroup"):
        pytest.skip("memory is held by rlimit here, which fails allocations instead of killing")
    async with await provider.create(SandboxSpec(memory_mb=96)) as sandbox:
        hog = await sandbox.exec(["python3", "-c", "x = bytearray(400 << 20)"], timeout=60)
        assert hog.exit_code == 137
        assert not hog.timed_out
        assert (await sandbox.exec("echo on")).stdout == b"on\n"


async def test_the_sum_of_all_files_is_held_to_the_disk_limit(provider: LocalProvider) -> None:
    async with await provider.create(SandboxSpec(disk_mb=8)) as sandbox:
        big = await sandbox.exec("head -c 20000000 /dev/zero > big")
        assert not big.ok, "one file is stopped at once"
        await sandbox.exec("rm -f big; for n in 1 2 3; do head -c 5000000 /dev/zero > f$n; done")
        with pytest.raises(SandboxGone, match="more than its limit of 8 MiB"):
            await _use_for_a_minute(sandbox)


async def _use_for_a_minute(sandbox: AgentSandbox) -> None:
    async with asyncio.timeout(60):
        while True:
            await sandbox.exec("true")
            await asyncio.sleep(0.1)


async def test_no_core_file_is_ever_written(provider: LocalProvider) -> None:
    async with await provider.create(SandboxSpec()) as sandbox:
        assert (await sandbox.exec("ulimit -c")).stdout == b"0\n"


@pytest.mark.parametrize("field", ["cpu", "pids"])
def test_a_limit_that_nothing_holds_is_refused_with_the_mend(field: str) -> None:
    spec = SandboxSpec.model_validate({field: 2})
    with pytest.raises(SandboxUnsupported) as refusal:
        plan_limits(spec, LocalConfig(), {"memory": "rlimit", "disk": "measured"})
    assert "systemd-run" in refusal.value.hint
    assert f"leave {field} out" in refusal.value.hint


@pytest.mark.parametrize(
    "fields",
    [{"memory_mb": 0}, {"memory_mb": 8}, {"cpu": -1}, {"cpu": float("nan")}, {"pids": 0}, {"disk_mb": -5}],
)
def test_a_limit_that_makes_no_sense_is_refused(fields: dict[str, float]) -> None:
    by = dict.fromkeys(("memory", "cpu", "pids", "disk"), "cgroup-v2")
    with pytest.raises(SandboxUnsupported):
        plan_limits(SandboxSpec.model_validate(fields), LocalConfig(), by)


def test_without_cgroups_rlimits_hold_memory_and_processes() -> None:
    by = {"memory": "rlimit", "pids": "rlimit", "disk": "measured"}
    plan = plan_limits(SandboxSpec(memory_mb=100, pids=7), LocalConfig(), by)
    assert plan.cgroup == {}
    assert plan.rlimits[resource.RLIMIT_DATA] == 100 << 20
    assert plan.rlimits[resource.RLIMIT_NPROC] == 7


def test_cgroups_take_over_what_they_can() -> None:
    assert enforcers({"cpu": "cgroup-v2", "memory": "cgroup-v2"})["memory"] == "cgroup-v2"
    assert enforcers({})["disk"] == "measured"
    assert "cpu" not in enforcers({})


@pytest.mark.parametrize(
    ("version", "files"),
    [
        ("cgroup-v1", {"memory.limit_in_bytes": "1048576", "cpu.cfs_quota_us": "150000", "pids.max": "9"}),
        ("cgroup-v2", {"memory.max": "1048576", "cpu.max": "150000 100000", "pids.max": "9"}),
    ],
)
def test_each_version_is_told_in_its_own_words(tmp_path: Path, version: str, files: dict[str, str]) -> None:
    slots = tuple(
        Slot(controller=name, version=version, parent=tmp_path) for name in ("memory", "cpu", "pids")
    )
    plan = CgroupPlan(name="orchard-x", slots=slots)
    group = plan.create("box", {"memory": 1 << 20, "cpu": 1.5, "pids": 9})
    assert group.directories == [tmp_path / "orchard-x/box"]
    for name, text in files.items():
        assert (tmp_path / "orchard-x/box" / name).read_text() == text


def test_a_host_without_cgroups_has_no_plan(tmp_path: Path) -> None:
    assert find_plan("orchard-x", proc=tmp_path).slots == ()


def test_a_read_only_cgroup_mount_is_no_plan(tmp_path: Path) -> None:
    (tmp_path / "cgroup").write_text("0::/user.slice\n1:memory:/box\n")
    (tmp_path / "mountinfo").write_text(
        f"30 20 0:26 / {tmp_path}/none rw shared:4 - cgroup2 cgroup2 rw\n"
        f"31 20 0:27 / {tmp_path}/nothing rw - cgroup cgroup rw,memory\n"
    )
    (tmp_path / "none").touch()
    (tmp_path / "nothing").touch()
    assert find_plan("orchard-x", proc=tmp_path).slots == ()
