"""Commands as `subprocess.run` runs them, each forked from a nursery that has done the imports."""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path


def run(
    argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str], timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """Run the command; its output is captured. Raises subprocess.TimeoutExpired once it has killed it."""
    asked = json.dumps({"argv": list(argv), "cwd": str(cwd), "environment": dict(environment)}) + "\n"
    with (
        Path(os.devnull).open("rb") as nothing,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link,
    ):
        link.connect(_nursery())
        socket.send_fds(link, [asked.encode()], [nothing.fileno(), out.fileno(), err.fileno()])
        with link.makefile("r") as told:
            command = int(told.readline())
            link.settimeout(timeout_s)
            try:
                code = int(told.readline())
            except TimeoutError:
                os.kill(command, signal.SIGKILL)
                raise subprocess.TimeoutExpired(list(argv), timeout_s) from None
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(list(argv), code, out.read().decode(), err.read().decode())


@functools.cache
def _nursery() -> str:
    """The socket of one that lives as long as this process; it ends by itself when this one dies."""
    place = tempfile.mkdtemp(prefix="orchard-nursery-")
    path = f"{place}/socket"
    nursery = subprocess.Popen(
        [sys.executable, "-m", "tests.cli.nursery", path], cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    atexit.register(nursery.kill)
    assert nursery.stdout is not None
    assert nursery.stdout.readline() == "ready\n"
    return path
