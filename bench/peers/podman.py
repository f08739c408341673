"""A podman service of our own: private storage, socket and settings in one folder, all gone at the end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.peers.environment import LeftOut, run

HINT = "to get it: apt install podman runc busybox-static"
TOOLS = ("sh", "true", "sleep")
BLOB_CACHE = Path("/var/lib/containers/cache/blob-info-cache-v1.boltdb")
STRAYS = (
    BLOB_CACHE,
    BLOB_CACHE.parent,
    BLOB_CACHE.parents[1],
    Path("/run/containers/networks"),
    Path("/run/containers"),
)
"""What podman makes outside any folder it is told, as root; innermost first."""


def settings(place: Path) -> str:
    """What works without systemd and with low limits."""
    return f"""
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
netns = "none"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
lock_type = "file"
tmp_dir = "{place / "tmp"}"
"""


@contextmanager
def podman_service(place: Path) -> Iterator[Path]:
    """The socket of a service that has an image `bench`.

    Raises:
        LeftOut: something it needs is missing, or it does not start.
    """
    missing = [tool for tool in ("podman", "runc", "busybox") if not find(tool)]
    if missing:
        raise LeftOut(f"no {' and no '.join(missing)} here ({HINT})")
    new = [path for path in STRAYS if not path.exists()]
    place.mkdir()
    (place / "containers.conf").write_text(settings(place))
    env = {**os.environ, "CONTAINERS_CONF": str(place / "containers.conf"), "TMPDIR": str(place)}
    env |= {"XDG_DATA_HOME": str(place / "data")}
    command = [find("podman"), "--root", str(place / "root"), "--runroot", str(place / "run")]
    try:
        make_image(command, place, env)
        with service(command, place / "socket", env) as socket:
            yield socket
    finally:
        sweep(command, place, env)
        unmake(new)


def find(tool: str) -> str:
    """Its path, or nothing; administrators' folders count."""
    return shutil.which(tool, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") or ""


def make_image(command: list[str], place: Path, env: dict[str, str]) -> None:
    """A root file system of one static program."""
    folder = place / "rootfs" / "bin"
    folder.mkdir(parents=True)
    shutil.copy(find("busybox"), folder / "busybox")
    for tool in TOOLS:
        (folder / tool).symlink_to("busybox")
    archive = place / "rootfs.tar"
    run(["tar", "-cf", str(archive), "-C", str(place / "rootfs"), "."], HINT)
    run([*command, "import", "--quiet", str(archive), "bench"], HINT, env)
    run(
        [*command, "run", "--rm", "--network", "none", "bench", "true"],
        f"{HINT}; busybox must be static",
        env,
    )


@contextmanager
def service(command: list[str], socket: Path, env: dict[str, str]) -> Iterator[Path]:
    started = [*command, "system", "service", "--time", "0", f"unix://{socket}"]
    process = subprocess.Popen(
        started, env=env, cwd=socket.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 30
        while not socket.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise LeftOut(f"`podman system service` did not start ({HINT})")
            time.sleep(0.05)
        yield socket
    finally:
        process.terminate()
        process.wait(30)


def sweep(command: list[str], place: Path, env: dict[str, str]) -> None:
    """End the containers and their monitors and undo the mounts, so that the folder can go."""
    for end in (["rm", "--all", "--force", "--time", "0"], ["rmi", "--all", "--force"]):
        subprocess.run([*command, *end], env=env, capture_output=True, check=False, timeout=60)
    for pid in started_in(place):  # the monitor of an exec stays for minutes after its end
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    mounted = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for path in sorted((path for path in mounted if path.startswith(f"{place}/")), reverse=True):
        subprocess.run(["umount", path], capture_output=True, check=False)


def started_in(place: Path) -> list[int]:
    """Processes whose command line names the folder."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and f"{place}/".encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def unmake(new: list[Path]) -> None:
    """Remove what was not there before, unless another podman has put something into it since."""
    for path in new:
        with suppress(OSError):
            path.rmdir() if path.is_dir() else path.unlink()
    parents = sorted(Path("/sys/fs/cgroup").glob("**/libpod_parent"))
    for parent in parents:
        for path in (*sorted(parent.glob("**/"), reverse=True), parent):
            with suppress(OSError):  # one that is in use cannot be removed
                path.rmdir()
