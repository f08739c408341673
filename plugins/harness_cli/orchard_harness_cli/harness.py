"""The harness `cli:NAME`, as the contract wants it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue

from orchard_core import (
    Harness,
    HarnessCapabilities,
    HarnessResult,
    InsideProgram,
    Limits,
    ModelEndpoint,
    Mount,
    MountsNeeded,
    Sandbox,
    SettingsRead,
    Task,
    Told,
    Tool,
    ToolUse,
    install_tool_client,
    instruction_argument,
    json_events,
    private_home,
    run_inside,
)
from orchard_harness_cli import __version__
from orchard_harness_cli.adapter import find_adapter
from orchard_harness_cli.config import CliConfig


class Cli(Harness, MountsNeeded, SettingsRead):
    """Runs a coding CLI inside the sandbox, unmodified."""

    def __init__(self, config: CliConfig) -> None:
        self._config = config
        self._adapter = find_adapter(config.cli)
        self._read = self._adapter.reader()
        self._cli = Path(config.cli).stem

    @property
    def name(self) -> str:
        """As it is written, `cli:pi`."""
        return f"cli:{self._cli}"

    @property
    def version(self) -> str:
        """This package's and the CLI's."""
        note = f", {self._adapter.note}" if self._adapter.note else ""
        return f"{__version__} ({self._cli} {self._adapter.npm.version}{note})"

    @property
    def capabilities(self) -> HarnessCapabilities:
        """As the adapter says."""
        return self._adapter.able

    @property
    def settings_read(self) -> JsonValue:
        """The adapter, for it may be a file of the user's."""
        return self._adapter.model_dump(mode="json")

    async def mounts(self) -> Sequence[Mount]:
        """The CLI's installation. Raises ConfigError."""
        return await self._adapter.npm.mounts()

    async def run(
        self, task: Task, sandbox: Sandbox, model: ModelEndpoint, tools: Sequence[Tool], limits: Limits
    ) -> HarnessResult:
        """Run one task. Raises HarnessError for each way in which a program fails by itself."""
        inside = await sandbox.expose_model(model)
        instruction = task.instruction
        if tools and self.capabilities.tools is ToolUse.CLI:
            client = await install_tool_client(sandbox, inside, tools)
            instruction = f"{instruction.rstrip()}\n\n{client.instructions}"
        home = private_home(sandbox)
        argument, by_file = instruction_argument(instruction, home)
        program = self._program(argument, inside, home, limits, mcp=bool(tools))
        if self._adapter.instruction_in_argv:
            program = replace(program, files=(*program.files, *by_file))
        argv = (*await self._adapter.npm.command(), *program.argv)
        stdin = instruction.encode("utf-8", "replace")
        program = replace(program, argv=argv, name=self._cli, cwd=task.workdir, stdin=stdin)
        told = Told()
        read = json_events(lambda event: self._read(event, told))
        end = await run_inside(sandbox, program, on_line=read)
        if self._adapter.model_error and self._adapter.model_error in end.last_words:
            told.error = end.last_words
        return told.result(end)

    def _program(
        self, instruction: str, model: ModelEndpoint, home: str, limits: Limits, *, mcp: bool
    ) -> InsideProgram:
        values = {
            "instruction": instruction,
            "model": model.model,
            "key": model.api_key,
            "base_url": model.base_url,
            "root_url": model.root_url,
            "tools_url": model.tools_url,
            "home": home,
            "turns": str(limits.turns),
            "context_window": str(self._config.context_window),
            "max_output": str(self._config.max_output),
        }
        return self._adapter.program(values, mcp=mcp, turns=limits.turns is not None)
