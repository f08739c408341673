"""A program that knows the published SDK alone runs unchanged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ..service.running import GENEROUS_S, Running

PROGRAM = """
import asyncio
from orchard_env import (
    AsyncContainerProcess, AsyncSandboxClient, AsyncSandboxInstance, ContainerProcess, JobResult,
    SandboxClient, SandboxInstance,
)

with SandboxClient(timeout=60) as client:
    assert client.health()["status"] in ("ok", "healthy")
    with client.create_sandbox(image="host", block_network=True, cpu="1", memory="512Mi") as sandbox:
        assert isinstance(sandbox, SandboxInstance)
        sandbox.start_heartbeat(interval=30)
        result = sandbox.exec("echo $GREETING", env={"GREETING": "hello"}, timeout=30, login_shell=True)
        assert isinstance(result, JobResult) and result.stdout == "hello\\n", result
        failing = sandbox.exec("ls /nowhere", cwd="/tmp")
        assert failing.failed and failing.exit_code and failing.stderr
        late = sandbox.exec("sleep 30", timeout=1)
        assert late.status == "failed" and late.error and late.exit_code == 124
        queued = sandbox.exec("echo queued", wait=False)
        while not sandbox.get_job(queued.job_id).is_complete:
            pass
        sandbox.upload_content(b"print(6 * 7)", "/workspace/answer.py")
        with open("local.bin", "wb") as local:
            local.write(bytes(range(256)))
        sandbox.upload_file("local.bin", "/workspace/remote.bin")
        assert sandbox.download_file("/workspace/remote.bin", "back.bin") == 256
        assert open("back.bin", "rb").read() == bytes(range(256))
        names = {f["name"]: (f["type"], f["size"]) for f in sandbox.list_files("/workspace")}
        assert names["remote.bin"] == ("file", 256), names
        sandbox.stop_heartbeat()
        again = client.get_sandbox(sandbox.sandbox_id)
        assert again.exec("true").succeeded


async def main():
    async with AsyncSandboxClient() as client:
        async def one(number):
            async with await client.create_sandbox(image="host") as sandbox:
                assert isinstance(sandbox, AsyncSandboxInstance)
                return (await sandbox.exec(f"echo {number}")).stdout.strip()
        assert await asyncio.gather(*(one(n) for n in range(3))) == ["0", "1", "2"]
        sandbox = await client.create_sandbox(image="host")
        await client.cleanup_all()

asyncio.run(main())
print("done")
"""


def test_a_program_written_for_the_published_sdk_runs_unchanged(service: Running, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    ended = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env={**os.environ, "SANDBOX_BASE_URL": service.url, "SANDBOX_API_KEY": "any"},
        capture_output=True,
        text=True,
        timeout=4 * GENEROUS_S,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr
