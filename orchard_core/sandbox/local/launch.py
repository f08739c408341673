"""Starting one agent inside bubblewrap, and ending it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import select
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from orchard_core.errors import SandboxCreateFailed
from orchard_core.sandbox.local.cgroups import SandboxCgroup
from orchard_core.sandbox.local.command import Descriptors, Plan, arguments
from orchard_core.sandbox.local.limits import LimitPlan, apply_rlimits
from orchard_core.sandbox.local.stillness import Stillness, still
from orchard_core.sandbox.unix_socket import listen_at

_INFO_S = 20.0
_WORDS_MAX = 2000


@dataclass(slots=True, kw_only=True)
class Launched:
    """One running bubblewrap with its agent."""

    pid: int
    """The agent's process id on the host."""
    monitor: subprocess.Popen[bytes]
    """bubblewrap outside; it ends when everything inside has ended."""
    pidfd: int
    """The agent, process 1 inside; killing it ends everything inside."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while the descriptor is used or given up."""

    def ended(self) -> bool:
        """Everything inside is gone."""
        return self.monitor.poll() is not None

    def still(self) -> Stillness:
        """Stop everything inside until the answer's `end`. Blocking; of what has ended nothing is stopped."""
        with self.lock:
            return Stillness() if self.pidfd < 0 else still(self.pid, self.pidfd)

    def kill(self) -> None:
        """End it and wait until nothing is left. Blocking; repeated calls are fine."""
        with self.lock:
            if self.pidfd >= 0:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
                os.close(self.pidfd)
                self.pidfd = -1
        self.monitor.wait()


def launch(
    bwrap: Path,
    plan: Plan,
    box: Path,
    token_text: str,
    limits: LimitPlan,
    cgroup: SandboxCgroup,
    seccomp: bytes | None,
) -> Launched:
    """Start the agent, limited before it runs. Blocking, about 10 ms.

    Call it from a thread that lives as long as the sandbox: the kernel ends bubblewrap when the *thread* that
    started it ends. Raises SandboxCreateFailed with bubblewrap's own words.
    """
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(listen_at(box / "agent.sock"))
        token, info, block = _pipe(stack), _pipe(stack), _pipe(stack)
        fds = Descriptors(
            listener=listener.fileno(),
            token=token.read.fileno(),
            info=info.write.fileno(),
            block=block.read.fileno(),
            seccomp=None if seccomp is None else _memory_file(stack, seccomp),
        )
        with cgroup.births():
            monitor = _spawn(stack, bwrap, plan, fds, box / "agent.log")
        for end in (token.read, info.write, block.read, listener):
            end.close()
        launched = None
        try:
            pid = _child_pid(info.read)
            launched = Launched(pid=pid, monitor=monitor, pidfd=os.pidfd_open(pid))
            cgroup.add(pid)
            apply_rlimits(pid, limits)
            token.write.write(token_text.encode())
            block.write.write(b"1")
        except (OSError, ValueError) as error:
            _abandon(monitor, launched)
            words = last_words(box / "agent.log") or str(error)
            raise SandboxCreateFailed(f"sandbox {plan.sandbox_id} did not start: {words}") from error
    return launched


def _spawn(
    stack: contextlib.ExitStack, bwrap: Path, plan: Plan, fds: Descriptors, log_path: Path
) -> subprocess.Popen[bytes]:
    options, command = arguments(plan, fds)
    options_fd = _memory_file(stack, os.fsencode("\0".join(options)) + b"\0")
    with log_path.open("wb") as log:
        return subprocess.Popen(
            [bwrap, "--args", str(options_fd), "--", *command],
            pass_fds=(*fds.all(), options_fd),
            env={},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pipe:
    read: io.FileIO
    """The end that gives."""
    write: io.FileIO
    """The end that takes."""


def _pipe(stack: contextlib.ExitStack) -> _Pipe:
    read, write = os.pipe2(os.O_CLOEXEC)
    return _Pipe(
        read=stack.enter_context(io.FileIO(read, "rb")), write=stack.enter_context(io.FileIO(write, "wb"))
    )


def _memory_file(stack: contextlib.ExitStack, content: bytes) -> int:
    file = stack.enter_context(io.FileIO(os.memfd_create("orchard", os.MFD_CLOEXEC), "r+b"))
    file.write(content)
    file.seek(0)
    return file.fileno()


def _child_pid(info: io.FileIO) -> int:
    """Process 1 inside, as seen from here. Raises ValueError when bubblewrap ended without telling."""
    text, deadline = b"", time.monotonic() + _INFO_S
    poll = select.poll()
    poll.register(info, select.POLLIN | select.POLLHUP)
    while b"}" not in text:
        readable = poll.poll(1000 * max(0.0, deadline - time.monotonic()))
        piece = info.read(4096) if readable else b""
        if not piece:
            raise ValueError("bubblewrap ended, or hung, before the sandbox stood")
        text += piece
    return int(json.loads(text)["child-pid"])


def _abandon(monitor: subprocess.Popen[bytes], launched: Launched | None) -> None:
    if launched is not None:
        launched.kill()
    monitor.kill()
    monitor.wait()


def last_words(log: Path) -> str:
    """What bubblewrap or the agent said last."""
    try:
        return log.read_bytes()[-_WORDS_MAX:].decode("utf-8", "replace").strip()
    except OSError:
        return ""
