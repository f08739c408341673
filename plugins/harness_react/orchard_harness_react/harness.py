"""The harness `react`, as the contract wants it."""

from __future__ import annotations

from collections.abc import Sequence

from orchard_core import (
    Harness,
    HarnessCapabilities,
    HarnessResult,
    Limits,
    ModelEndpoint,
    Sandbox,
    Task,
    Tool,
    ToolUse,
)
from orchard_harness_react import __version__
from orchard_harness_react.chat import Chat
from orchard_harness_react.config import ReactConfig
from orchard_harness_react.episode import Episode
from orchard_harness_react.native import NativeProtocol
from orchard_harness_react.own_tools import own_tools
from orchard_harness_react.prompt import SystemPrompt
from orchard_harness_react.protocol import Protocol
from orchard_harness_react.text import TextProtocol

CAPABILITIES = HarnessCapabilities(tools=ToolUse.NATIVE, images=True, turn_limit=True, replayable=True)


class React(Harness):
    """Asks the model, runs the tools it calls, shows it the results; again, until it submits."""

    def __init__(self, config: ReactConfig | None = None) -> None:
        self._config = config or ReactConfig()
        self._prompt = SystemPrompt(self._config.system_template)

    @property
    def name(self) -> str:
        """Its name."""
        return "react"

    @property
    def version(self) -> str:
        """Its version."""
        return __version__

    @property
    def capabilities(self) -> HarnessCapabilities:
        """It calls tools itself, shows pictures, and its conversation is all its state."""
        return CAPABILITIES

    async def run(
        self, task: Task, sandbox: Sandbox, model: ModelEndpoint, tools: Sequence[Tool], limits: Limits
    ) -> HarnessResult:
        """Run one task. Raises ModelError and SandboxError untouched; everything else is a result."""
        config = self._config
        offered = _merged(tools, own_tools(config, sandbox, task.workdir))
        protocol: Protocol = TextProtocol(offered) if config.protocol == "text" else NativeProtocol(offered)
        system = self._prompt.render(task=task, tools=offered, protocol=config.protocol, limits=limits)
        async with Chat(model, config, protocol.request_fields()) as chat:
            episode = Episode(config=config, chat=chat, protocol=protocol, tools=offered, limits=limits)
            return await episode.run(system, task.instruction)


def _merged(task_tools: Sequence[Tool], own: Sequence[Tool]) -> list[Tool]:
    """The task's tools, and those of our own whose names are free."""
    taken = {tool.name for tool in task_tools}
    return [*task_tools, *(tool for tool in own if tool.name not in taken)]
