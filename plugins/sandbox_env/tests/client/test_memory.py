"""Large files cost no memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..service.running import GENEROUS_S, Running

SIZE = 400 << 20
PROGRAM = """
import os, resource
from orchard_env import SandboxClient
with open("large", "wb") as large:
    large.truncate(SIZE)
with SandboxClient() as client, client.create_sandbox("host") as sandbox:
    sandbox.exec("true")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert sandbox.upload_file("large", "/workspace/large")["size"] == SIZE
    assert sandbox.download_file("/workspace/large", "back") == SIZE
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
def test_a_large_file_is_never_held_in_memory(service: Running, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("SIZE", str(SIZE))],
        cwd=tmp_path,
        env={**os.environ, "SANDBOX_BASE_URL": service.url},
        capture_output=True,
        text=True,
        timeout=4 * GENEROUS_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) < 64 << 10  # KiB
