"""What a snapshot holds, layer by layer, and what it is refused for."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from orchard_core.errors import SandboxUnsupported, SnapshotMissing
from orchard_core.sandbox.agent_sandbox import AgentSandbox
from orchard_core.sandbox.contract import Sandbox
from orchard_core.sandbox.local.config import LocalConfig
from orchard_core.sandbox.local.provider import LocalProvider
from orchard_core.types.sandbox import ImageRef, NetworkMode, SandboxSpec

_CHANGE = """
import os, socket
os.chdir("/workspace")
open("plain", "w").write("x" * 1000)
os.link("plain", "linked")
os.setxattr("plain", "user.note", b"kept")
with open("sparse", "wb") as file:
    file.seek(1 << 30)
    file.write(b"end")
os.mkfifo("pipe")
socket.socket(socket.AF_UNIX).bind("socket")
open("setuid", "w")
os.chmod("setuid", 0o4751)
os.utime("setuid", ns=(1_000_000_001, 2_000_000_002))
os.mkdir("closed", 0o700)
open("closed/secret", "w").write("s")
os.chmod("closed/secret", 0)
os.chmod("closed", 0)
os.chmod("/workspace", 0o711)
for place in ("/tmp", os.environ["HOME"], "/opt", "/etc"):
    open(place + "/written", "w").write(place)
os.remove("/etc/services")
"""
_LOOK = """
import json, os, stat
def look(path):
    info = os.lstat(path)
    times = [info.st_mtime_ns, info.st_size, info.st_nlink, info.st_uid, info.st_gid]
    return [stat.S_IFMT(info.st_mode), stat.S_IMODE(info.st_mode), *times]
home = os.environ["HOME"]
names = ["plain", "linked", "sparse", "pipe", "socket", "setuid", "closed", ".", "closed/secret", "/tmp",
         "/tmp/written", home, home + "/written", "/opt/written", "/etc/written"]
os.chdir("/workspace")
print(json.dumps({
    "entries": {name: look(name) for name in names},
    "note": os.getxattr("linked", "user.note").decode(),
    "blocks": os.lstat("sparse").st_blocks < 1000,
    "end": open("sparse", "rb").read()[-3:].decode(),
    "secret": open("closed/secret").read(),
    "services": os.path.lexists("/etc/services"),
}))
"""


async def _python(sandbox: Sandbox, program: str) -> bytes:
    done = await sandbox.exec(["python3", "-c", program], timeout=60)
    assert done.ok, done.text
    return done.stdout


async def test_every_kind_of_file_comes_back_as_it_was(sandbox: AgentSandbox) -> None:
    await _python(sandbox, _CHANGE)
    before = json.loads(await _python(sandbox, _LOOK))
    (child,) = await sandbox.fork(1)
    async with child:
        assert json.loads(await _python(child, _LOOK)) == before
    assert before["blocks"]
    assert not before["services"]
    assert before["entries"]["plain"][4] == 2, "two names of one file"


async def test_a_directory_that_took_the_place_of_another_hides_it_still(sandbox: AgentSandbox) -> None:
    shown = "/usr/share" if os.geteuid() == 0 else "/etc/ssl"
    made = await sandbox.exec(f"rm -rf {shown} && mkdir {shown} && echo own > {shown}/own")
    assert made.ok, made.text
    (child,) = await sandbox.fork(1)
    async with child:
        (grandchild,) = await child.fork(1)
    async with grandchild:
        assert (await grandchild.exec(["ls", shown])).stdout == b"own\n"


async def test_a_copy_behaves_as_the_original(sandbox: AgentSandbox) -> None:
    """An overlay above a frozen layer would refuse to rename the directory and part the two names."""
    await sandbox.exec("mkdir -p old/deep && echo x > old/deep/file && ln old/deep/file other")
    (child,) = await sandbox.fork(1)
    async with child:
        await _python(child, "import os; os.rename('/workspace/old', '/workspace/new')")
        await child.exec("echo more >> other")
        assert (await child.exec("cat new/deep/file")).stdout == b"x\nmore\n"
        assert (await sandbox.exec("cat other")).stdout == b"x\n"


async def test_shared_memory_and_processes_are_not_saved(sandbox: AgentSandbox) -> None:
    await sandbox.exec("echo x > /dev/shm/file; setsid sleep 1000 > /dev/null 2>&1 &")
    (child,) = await sandbox.fork(1)
    async with child:
        seen = await child.exec("ls /dev/shm; cat /proc/[0-9]*/comm")
        assert "file" not in seen.stdout_text.split()
        assert "sleep" not in seen.stdout_text.split()


async def test_a_rootfs_is_saved_and_restored_under_itself_only(
    provider: LocalProvider, tmp_path: Path
) -> None:
    images = [tmp_path / "a", tmp_path / "b"]
    for image in images:
        (image / "usr").mkdir(parents=True)
        (image / "etc").mkdir()
        (image / "etc/name").write_text(image.name)
    first, second = (SandboxSpec(image=ImageRef(kind="rootfs", value=str(image))) for image in images)
    async with await provider.create(first) as sandbox:
        await sandbox.remove("/etc/name")
        await sandbox.write("/etc/own", b"own")
        saved = await sandbox.snapshot()
    for other in (second, SandboxSpec()):
        with pytest.raises(SandboxUnsupported, match="another image") as refusal:
            await provider.create(other, restore=saved)
        assert refusal.value.hint
    async with await provider.create(first, restore=saved) as restored:
        assert [entry.name for entry in await restored.list("/etc")] == ["own"]


async def test_a_snapshot_is_restored_under_its_user_only(provider: LocalProvider) -> None:
    async with await provider.create(SandboxSpec(user="agent")) as sandbox:
        await sandbox.exec("echo x > ~/file")
        saved = await sandbox.snapshot()
    with pytest.raises(SandboxUnsupported, match="another user: agent"):
        await provider.create(SandboxSpec(), restore=saved)
    async with await provider.create(SandboxSpec(user="agent", env={"MORE": "1"}), restore=saved) as restored:
        assert (await restored.exec("id -un; cat ~/file; echo $MORE")).stdout == b"agent\nx\n1\n"


async def test_a_snapshot_larger_than_the_disk_limit_is_refused(provider: LocalProvider) -> None:
    async with await provider.create(SandboxSpec()) as sandbox:
        await sandbox.exec("head -c 9000000 /dev/urandom > big")
        saved = await sandbox.snapshot()
    assert saved.size >= 9_000_000
    with pytest.raises(SandboxUnsupported, match="more than the limit of 8 MiB"):
        await provider.create(SandboxSpec(disk_mb=8), restore=saved)
    async with await provider.create(SandboxSpec(disk_mb=80), restore=saved) as restored:
        assert (await restored.stat("/workspace/big")).size == 9_000_000


async def test_a_snapshot_is_the_provider_objects_own(
    provider: LocalProvider, sandbox: AgentSandbox, tmp_path: Path
) -> None:
    saved = await sandbox.snapshot()
    other = LocalProvider(LocalConfig(state_dir=str(tmp_path / "other")))
    with pytest.raises(SnapshotMissing, match="ends with its provider") as missing:
        await other.create(SandboxSpec(), restore=saved)
    assert missing.value.hint
    with pytest.raises(SandboxUnsupported, match="container"):
        await provider.create(SandboxSpec(), restore=saved.model_copy(update={"provider": "container"}))
    await other.close()


async def test_a_discard_waits_for_what_is_being_restored(provider: LocalProvider, state: Path) -> None:
    async with await provider.create(SandboxSpec()) as sandbox:
        await sandbox.exec("for n in $(seq 500); do echo $n > $n; done")
        saved = await sandbox.snapshot()
    restoring = [asyncio.create_task(provider.create(SandboxSpec(), restore=saved)) for _ in range(3)]
    while not list(state.glob("drivers/*/boxes/*/root/workspace")):
        await asyncio.sleep(0)
    await provider.discard(saved)
    assert list(state.glob("drivers/*/snapshots/*")) == []
    for one in await asyncio.gather(*restoring):
        assert (await one.exec("cat 1 500; ls | wc -l")).stdout == b"1\n500\n500\n"
        await one.close()


async def test_a_fork_has_its_own_way_out_and_its_own_limits(provider: LocalProvider, state: Path) -> None:
    spec = SandboxSpec.model_validate({"network": NetworkMode.OPEN, "memory_mb": 200})
    async with await provider.create(spec) as sandbox:
        made = await sandbox.fork(2)
        assert len(list(state.glob("drivers/*/boxes/*/egress.sock"))) == 3
        groups = [path for path in Path("/sys/fs/cgroup").rglob("local-*") if path.name == made[0].id]
        assert bool(groups) == (await provider.capabilities()).limits["memory"].startswith("cgroup")
        await made[0].close()
        assert len(list(state.glob("drivers/*/boxes/*/egress.sock"))) == 2
        await made[1].close()


async def test_forks_leave_no_snapshot_and_no_descriptor(sandbox: AgentSandbox, state: Path) -> None:
    await (await sandbox.fork(1))[0].close()
    before = _descriptors()
    for child in await sandbox.fork(3):
        await child.close()
    assert list(state.glob("drivers/*/snapshots/*")) == []
    assert len(list(state.glob("drivers/*/boxes/*"))) == 1
    assert _descriptors() == before


def _descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def test_without_overlays_the_whole_root_is_copied(provider: LocalProvider) -> None:
    await provider.capabilities()
    assert provider._host is not None
    provider._host = replace(provider._host, overlays=False)
    async with await provider.create(SandboxSpec()) as sandbox:
        await sandbox.exec("echo x > f; rm /etc/services")
        (child,) = await sandbox.fork(1)
    async with child:
        seen = await child.exec(
            "cat f; test -e /etc/services || echo gone; test -e /etc/passwd && echo there"
        )
        assert seen.stdout == b"x\ngone\nthere\n"
