"""mini-swe-agent's commands, run in the sandbox and told just as its own local environment tells them."""

from __future__ import annotations

import errno
import os
import shlex
from subprocess import CompletedProcess, TimeoutExpired
from typing import Any

from orchard_core import CwdMissing, ExecError, Sandbox, ThreadBridge
from orchard_harness_miniswe.stock import local, recursive_merge

_UNAME = ("system", "node", "release", "version", "machine")


class SandboxEnvironmentConfig(local.LocalEnvironmentConfig):
    """mini-swe-agent's own options, and the one that its container environments add."""

    interpreter: tuple[str, ...] = ("/bin/sh", "-c")
    """What is given a command."""


class SandboxEnvironment(local.LocalEnvironment):
    """`_check_finished` and `serialize` are the stock ones; only where a command runs is ours."""

    def __init__(self, sandbox: Sandbox, bridge: ThreadBridge, uname: dict[str, str], **config: Any) -> None:
        super().__init__(config_class=SandboxEnvironmentConfig, **config)
        self._sandbox = sandbox
        self._bridge = bridge
        self._uname = uname

    def execute(self, action: dict[str, Any], cwd: str = "", *, timeout: int | None = None) -> dict[str, Any]:
        """Run the command. Raises Submitted when it submits, and SandboxError when the sandbox fails."""
        run = self._run(action.get("command", ""), cwd or self.config.cwd, timeout or self.config.timeout)
        try:
            done = self._bridge.wait(run)
            output = {"output": done.stdout, "returncode": done.returncode, "exception_info": ""}
        except (ExecError, FileNotFoundError, TimeoutExpired, TypeError, ValueError) as error:
            output = {
                "output": getattr(error, "output", None) or "",
                "returncode": -1,
                "exception_info": f"An error occurred while executing the command: {error}",
                "extra": {"exception_type": type(error).__name__, "exception": str(error)},
            }
        self._check_finished(output)
        return output

    def get_template_vars(self, **kwargs: Any) -> dict[str, Any]:
        """Options and the sandbox's own uname; this process's environment variables stay where they are."""
        return recursive_merge(self.config.model_dump(), self._uname, kwargs)

    async def _run(self, command: object, cwd: str, timeout: int) -> CompletedProcess[str]:
        """Raises what `subprocess.run` raises for the same."""
        if not isinstance(command, str):
            raise TypeError(f"a command is a string, not {type(command).__name__}")
        if "\0" in command:
            raise ValueError("embedded null byte")
        command.encode()
        joined = f"exec {shlex.join([*self.config.interpreter, command])} 2>&1"
        try:
            done = await self._sandbox.exec(joined, cwd=cwd, env=self.config.env, timeout=timeout)
        except CwdMissing:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), cwd) from None
        text = done.text.replace("\r\n", "\n").replace("\r", "\n")
        if done.timed_out:
            raise TimeoutExpired(command, timeout, output=text)
        return CompletedProcess(command, done.exit_code, stdout=text)


async def surroundings(sandbox: Sandbox, wanted: str, workdir: str) -> tuple[str, dict[str, str]]:
    """The wanted directory where it is one, else the workdir; and what `platform.uname()` says inside."""
    look = f"for field in s n r v m; do uname -$field || echo; done; test -d {shlex.quote(wanted)}"
    told = await sandbox.exec(look)
    uname = dict.fromkeys(_UNAME, "") | dict(zip(_UNAME, told.stdout_text.splitlines(), strict=False))
    return wanted if told.ok else workdir, uname
