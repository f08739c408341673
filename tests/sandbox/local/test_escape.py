"""What a hostile command tries from inside, as the sandbox's root."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from orchard_core.sandbox.agent import agent_binary
from orchard_core.sandbox.agent_sandbox import AgentSandbox
from orchard_core.sandbox.local.config import LocalConfig
from orchard_core.sandbox.local.provider import LocalProvider
from orchard_core.sandbox.local.seccomp import filter_program
from orchard_core.types.sandbox import SandboxSpec

_KNOWN_MACHINE = pytest.mark.skipif(
    platform.machine() not in {"x86_64", "aarch64"}, reason="no system-call filter for this machine"
)


@pytest.mark.parametrize(
    "attempt",
    [
        "mount -t tmpfs none /mnt",
        "mount -o remount,rw /proc/sys",
        "umount /proc/sys",
        "unshare --user true",
        "unshare --mount true",
        "mknod /tmp/disk b 8 0",
        "test -w /proc/sys/kernel/core_pattern",
        "test -w /proc/sys/kernel/hostname",
        "test -w /proc/sysrq-trigger",
        "ls /sys/kernel",
        "ls /oldroot",
        "nsenter --target 1 --mount true",
        "head -c 1 /proc/1/mem",
        "cat /proc/1/environ",
        "readlink /proc/1/fd/3",
        ": > /.orchard-agent",
        "rm -f /.orchard-agent",
    ],
)
async def test_the_way_out_is_shut(sandbox: AgentSandbox, attempt: str) -> None:
    result = await sandbox.exec(attempt)
    assert not result.ok, result.text


async def test_no_dangerous_capability_is_held(sandbox: AgentSandbox) -> None:
    status = (await sandbox.exec(["cat", "/proc/self/status"])).stdout_text
    values = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    sys_admin, sys_ptrace, net_admin, sys_module = 21, 19, 12, 16
    for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb"):
        held = int(values[name], 16)
        assert not any(held >> number & 1 for number in (sys_admin, sys_ptrace, net_admin, sys_module)), name
    assert values["NoNewPrivs"] == "1"


@_KNOWN_MACHINE
async def test_sockets_that_ignore_network_namespaces_cannot_be_made(sandbox: AgentSandbox) -> None:
    code = (
        "import socket, errno\n"
        "for family in (40, 38, 31):\n"
        "    try: socket.socket(family, socket.SOCK_STREAM)\n"
        "    except OSError as error: assert error.errno == errno.EAFNOSUPPORT, error\n"
        "    else: raise SystemExit(f'family {family} is open')\n"
        "for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6): socket.socket(family, 1).close()\n"
    )
    result = await sandbox.exec(["python3", "-c", code])
    assert result.ok, result.text


@_KNOWN_MACHINE
async def test_keyrings_bpf_and_io_uring_are_refused(sandbox: AgentSandbox) -> None:
    numbers = {"x86_64": (250, 321, 425), "aarch64": (219, 280, 425)}[platform.machine()]
    code = (
        "import ctypes, errno\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        f"for number in {numbers}:\n"
        "    assert libc.syscall(number, 0, 0, 0, 0) == -1 and ctypes.get_errno() == errno.EPERM, number\n"
    )
    result = await sandbox.exec(["python3", "-c", code])
    assert result.ok, result.text


async def test_the_sandbox_is_root_in_its_own_small_world(sandbox: AgentSandbox) -> None:
    result = await sandbox.exec(
        "set -e; test $(id -u) = 0; touch /root/f; chmod 0 /root/f; cat /root/f; echo x > /etc/new; "
        "mkdir /app; touch /app/f /tmp/f /var/log/f; mv /tmp/f /workspace/f; hostname"
    )
    assert result.stdout == b"sandbox\n", result.text


async def test_a_low_port_can_be_served(sandbox: AgentSandbox) -> None:
    code = "import socket; s = socket.socket(); s.bind(('127.0.0.1', 80)); s.listen()"
    result = await sandbox.exec(["python3", "-c", code])
    assert result.ok, result.text


async def test_nested_namespaces_work_only_when_asked_for(state: Path) -> None:
    provider = LocalProvider(LocalConfig(state_dir=str(state), nested_namespaces=True))
    code = "import ctypes; raise SystemExit(ctypes.CDLL(None).unshare(0x10000000))"
    async with await provider.create(SandboxSpec()) as sandbox:
        assert (await sandbox.exec(["python3", "-c", code])).ok
    await provider.close()


def test_an_unknown_machine_gets_no_filter_and_a_known_one_whole_instructions() -> None:
    assert filter_program("riscv64") is None
    for machine in ("x86_64", "aarch64"):
        program = filter_program(machine)
        assert program is not None
        assert len(program) % 8 == 0


def test_the_agent_needs_no_file_of_the_image() -> None:
    content = agent_binary().read_bytes()
    assert content[:4] == b"\x7fELF"
    assert b"/lib64/ld-linux" not in content[: 1 << 20]
