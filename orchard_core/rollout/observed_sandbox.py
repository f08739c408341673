"""The agent's sandbox as a harness gets it: the results of its commands are noted."""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping
from time import monotonic

from orchard_core.rollout.observing import LastResults
from orchard_core.sandbox.contract import Command, Sandbox
from orchard_core.sandbox.wrapper import SandboxWrapper
from orchard_core.types.sandbox import ExecResult


class ObservedSandbox(SandboxWrapper):
    """Honours `orchard_core.Sandbox`; all but `exec` goes straight to the sandbox it stands for."""

    def __init__(self, sandbox: Sandbox, results: LastResults) -> None:
        super().__init__(sandbox)
        self._results = results

    async def exec(
        self,
        command: Command,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | AsyncIterable[bytes] | None = None,
        timeout: float | None = None,
        user: str | None = None,
    ) -> ExecResult:
        """See Sandbox."""
        began = monotonic()
        result = await self._sandbox.exec(command, cwd=cwd, env=env, stdin=stdin, timeout=timeout, user=user)
        self._results.add_exec(result, began=began)
        return result
