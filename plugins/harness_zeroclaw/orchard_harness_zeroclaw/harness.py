"""The harness `zeroclaw`, as the contract wants it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from orchard_core import (
    ConfigError,
    FileInput,
    Harness,
    HarnessCapabilities,
    HarnessCrashed,
    HarnessResult,
    ImageChecked,
    ImageRef,
    InsideProgram,
    Limits,
    ModelEndpoint,
    Mount,
    MountsNeeded,
    ProgramEnd,
    Sandbox,
    StopReason,
    Task,
    Tool,
    ToolUse,
    instruction_argument,
    private_home,
    reported_stop,
    run_inside,
)
from orchard_harness_zeroclaw import __version__
from orchard_harness_zeroclaw.binary import binary_version, find_binary
from orchard_harness_zeroclaw.config import ZeroClawConfig
from orchard_harness_zeroclaw.settings import AGENT, settings

CAPABILITIES = HarnessCapabilities(tools=ToolUse.MCP, turn_limit=False)
"""It makes one call more when its own limit is reached, so turns cannot be bounded exactly."""
_SHOWN_AT = "/opt/orchard/zeroclaw"
_MODEL_TROUBLE = re.compile(r"API error|provider|budget_exceeded|session_closed|upstream_|\bHTTP\b")
"""What it says when its model could not be had; the gateway's own record corrects what is wrong here."""


class ZeroClaw(Harness, ImageChecked, MountsNeeded):
    """Runs `zeroclaw agent` inside the sandbox, unmodified, once a task."""

    def __init__(self, config: ZeroClawConfig | None = None) -> None:
        """Raises ConfigError for a binary that is not there."""
        self._config = config or ZeroClawConfig()
        self._binary: Path | None = find_binary(self._config.binary)

    @property
    def name(self) -> str:
        """Its name."""
        return "zeroclaw"

    @cached_property
    def version(self) -> str:
        """This package's and the program's."""
        return f"{__version__} ({binary_version(self._binary)})"

    @property
    def capabilities(self) -> HarnessCapabilities:
        """It is an MCP client."""
        return CAPABILITIES

    async def mounts(self) -> Sequence[Mount]:
        """The host's program, when there is one."""
        return () if self._binary is None else (Mount(source=str(self._binary), target=_SHOWN_AT),)

    def check_image(self, image: ImageRef) -> None:
        """The host's own files cannot hold a program that the host has not."""
        if self._binary is None and image.kind == "host":
            raise ConfigError(
                "there is no program zeroclaw on PATH, and the sandbox shows this machine's own files",
                hint="install a release and put it on PATH, give --harness-option binary=PATH, or take tasks "
                "whose image has it",
            )

    async def run(
        self, task: Task, sandbox: Sandbox, model: ModelEndpoint, tools: Sequence[Tool], limits: Limits
    ) -> HarnessResult:
        """Run one task. Raises HarnessError for each way in which the program fails by itself."""
        inside = await sandbox.expose_model(model)
        home = private_home(sandbox)
        message, files = instruction_argument(task.instruction, home)
        config = settings(self._config, inside, task, tools=bool(tools)).encode("utf-8", "replace")
        program = InsideProgram(
            argv=(_SHOWN_AT if self._binary else "zeroclaw", "agent", "-a", AGENT, "-m", message),
            env={"ZEROCLAW_CONFIG_DIR": f"{home}/.zeroclaw"},
            files=(FileInput(path=".zeroclaw/config.toml", content=config, mode=0o600), *files),
            cwd=task.workdir,
        )
        return _result(await run_inside(sandbox, program))


def _result(end: ProgramEnd) -> HarnessResult:
    """It prints its final answer and nothing else; how many turns it took, the gateway knows."""
    answer = end.stdout_tail.decode("utf-8", "replace").strip()
    fault = end.fault()
    if fault is None:
        return HarnessResult(stop=StopReason.ANSWERED, answer=answer)
    if isinstance(fault, HarnessCrashed) and end.exit_code < 128 and _MODEL_TROUBLE.search(end.last_words):
        return HarnessResult(stop=reported_stop(end.last_words), message=end.last_words)
    raise fault
