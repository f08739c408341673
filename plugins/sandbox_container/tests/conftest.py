"""A Podman of the tests' own: private storage, socket and settings in one folder, all gone at the end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from orchard_sandbox_container.config import ContainerConfig
from orchard_sandbox_container.provider import ContainerProvider

HINT = "to get it: apt install podman runc busybox-static, and be root or have subordinate ids"
PASSWD = "root:x:0:0:root:/root:/bin/sh\ndev:x:1000:1000::/home/dev:/bin/sh\n"
GROUP = "root:x:0:\ndev:x:1000:\n"
STRAYS = [
    Path("/var/lib/containers/cache/blob-info-cache-v1.boltdb"),
    Path("/var/lib/containers/cache"),
    Path("/var/lib/containers"),
    Path("/run/containers/networks"),
    Path("/run/containers"),
]
"""What podman makes outside any folder it is told, as root; innermost first."""


AGENTS_OWN = ("files", "given", "names", "once", "output", "started", "trees")
"""Parts of the sandbox suite whose answers the agent gives alone, in any container as anywhere else."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of the suite takes two minutes: what depends on the agent alone is for `make nightly`."""
    for item in items:
        module = getattr(getattr(item, "function", None), "__module__", "")
        if "test_suite.py" in item.nodeid and module.rpartition(".")[2] in AGENTS_OWN:
            item.add_marker(pytest.mark.nightly)


@dataclass(frozen=True, slots=True, kw_only=True)
class Podman:
    """A service that runs, and its command line."""

    place: Path
    """The folder that has all of it."""
    command: tuple[str, ...]
    """`podman` with its storage."""
    env: dict[str, str]
    """What it needs to be run with."""

    @property
    def socket(self) -> str:
        """The service's address."""
        return self.at("socket")

    def at(self, name: str) -> str:
        """The address of a service of that name."""
        return f"unix://{self.place / name}"

    def run(self, *words: str) -> str:
        """One command's output."""
        done = subprocess.run(
            [*self.command, *words], env=self.env, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def image(self, name: str, rootfs: Path, *changes: str) -> None:
        """Make an image of a directory; `changes` are lines of a Dockerfile."""
        archive = self.place / f"{name}.tar"
        subprocess.run(["tar", "-cf", archive, "-C", rootfs, "."], check=True, timeout=60)
        self.run(
            "import",
            "--quiet",
            *(word for line in changes for word in ("--change", line)),
            str(archive),
            name,
        )
        archive.unlink()

    @contextmanager
    def serving(self, name: str = "socket") -> Iterator[subprocess.Popen[bytes]]:
        """A service, until the context ends."""
        socket = self.place / name
        socket.unlink(missing_ok=True)
        process = subprocess.Popen(
            [*self.command, "system", "service", "--time", "0", self.at(name)],
            env=self.env,
            cwd=self.place,  # the monitor of a container that runs out of memory leaves a file `oom` there
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            deadline = time.monotonic() + 30
            while not socket.exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    pytest.skip(f"`podman system service` does not start here ({HINT})")
                time.sleep(0.02)
            yield process
        finally:
            process.terminate()
            process.wait(30)


@pytest_asyncio.fixture
async def provider(podman: Podman, tmp_path: Path) -> AsyncIterator[ContainerProvider]:
    """One whose sandboxes end with the case."""
    made = ContainerProvider(ContainerConfig(engine=podman.socket, state_dir=str(tmp_path)))
    yield made
    await made.close()


@pytest.fixture(scope="session")
def python_image(podman: Podman) -> str:
    """The name of an image with Python in it."""
    if "localhost/python" not in podman.run("images", "--format", "{{.Repository}}").split():
        pytest.skip("this machine has no /usr/bin/python3 to make an image of")
    return "python"


@pytest.fixture(scope="session")
def podman() -> Iterator[Podman]:
    """A service with the images `busybox`, whose user is root, `dev`, whose user is not, and `python`, where
    this machine has it."""
    missing = [tool for tool in ("podman", "runc", "busybox") if not _find(tool)]
    if missing:
        pytest.skip(f"no {' and no '.join(missing)} here ({HINT})")
    new = [path for path in STRAYS if not path.exists()]
    place = Path(tempfile.mkdtemp(prefix="orchard-podman-"))
    (place / "containers.conf").write_text(_settings(place))
    env = {**os.environ, "CONTAINERS_CONF": str(place / "containers.conf"), "TMPDIR": str(place)}
    env["XDG_DATA_HOME"] = str(place / "data")
    command = (_find("podman"), "--root", str(place / "root"), "--runroot", str(place / "run"))
    made = Podman(place=place, command=command, env=env)
    try:
        rootfs = busybox_rootfs(place / "rootfs")
        try:
            made.image("busybox", rootfs)
            made.image("dev", rootfs, "USER dev", "ENV FROM_IMAGE=yes")
            if (python := python_rootfs(rootfs)) is not None:
                made.image("python", python)
            made.run("run", "--rm", "--network", "none", "busybox", "true")
        except AssertionError as error:
            pytest.skip(f"podman cannot run a container here: {error} ({HINT}; busybox must be static)")
        with made.serving():
            yield made
    finally:
        _sweep(made)
        shutil.rmtree(place, ignore_errors=True)
        _unmake(new)


def busybox_rootfs(path: Path) -> Path:
    """A root file system of one static program."""
    for name in ("bin", "etc", "root", "usr/bin", "home/dev", "tmp", "var/tmp"):
        (path / name).mkdir(parents=True)
    for name in ("tmp", "var/tmp"):
        (path / name).chmod(0o1777)
    shutil.copy(_find("busybox"), path / "bin/busybox")
    tools = subprocess.run(
        [_find("busybox"), "--list"], capture_output=True, text=True, check=True
    ).stdout.split()
    for tool in tools:
        if tool != "busybox":
            (path / "bin" / tool).symlink_to("busybox")
    (path / "usr/bin/env").symlink_to("/bin/busybox")
    (path / "etc/passwd").write_text(PASSWD)
    (path / "etc/group").write_text(GROUP)
    with suppress(PermissionError):
        os.chown(path / "home/dev", 1000, 1000)
    return path


def python_rootfs(path: Path) -> Path | None:
    """The same with the system's Python; None where that is not to be had."""
    program = Path("/usr/bin/python3").resolve()
    library = Path("/usr/lib") / program.name
    if not program.is_file() or not library.is_dir():
        return None
    built = sorted(library.glob("lib-dynload/*.so"))
    needed = subprocess.run(["ldd", program, *built], capture_output=True, text=True, check=False).stdout
    words = {word for line in needed.splitlines() for word in line.split() if word.startswith("/")}
    for each in sorted({str(program), *words} - {f"{path}:" for path in (program, *built)}):
        target = path / each.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(each, target)
    (path / "usr/bin/python3").symlink_to(program.name)
    unneeded = shutil.ignore_patterns(
        "test", "__pycache__", "idlelib", "config-*", "dist-packages", "lib2to3"
    )
    shutil.copytree(library, path / str(library).lstrip("/"), ignore=unneeded, symlinks=True)
    return path


def _settings(place: Path) -> str:
    """What works without systemd and with low limits."""
    return f"""
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
lock_type = "file"
tmp_dir = "{place / "tmp"}"
"""


def _find(tool: str) -> str:
    return shutil.which(tool, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") or ""


def _sweep(podman: Podman) -> None:
    """End the containers and their monitors and undo the mounts, so that the folder can go."""
    for end in (["rm", "--all", "--force", "--time", "0"], ["rmi", "--all", "--force"]):
        subprocess.run([*podman.command, *end], env=podman.env, capture_output=True, check=False, timeout=120)
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and f"{podman.place}/".encode() in (entry / "cmdline").read_bytes():
                os.kill(int(entry.name), signal.SIGKILL)
    mounted = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for path in sorted((path for path in mounted if path.startswith(f"{podman.place}/")), reverse=True):
        subprocess.run(["umount", path], capture_output=True, check=False)


def _unmake(new: list[Path]) -> None:
    """Remove what was not there before, unless another podman has put something into it since."""
    for path in new:
        with suppress(OSError):
            path.rmdir() if path.is_dir() else path.unlink()
