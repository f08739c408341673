"""The harness `miniswe`, as the contract wants it."""

from __future__ import annotations

import json
from collections.abc import Sequence

import orchard_core as core
from orchard_harness_miniswe import __version__, stock
from orchard_harness_miniswe.environment import SandboxEnvironment, surroundings
from orchard_harness_miniswe.settings import MinisweConfig, Settings

CAPABILITIES = core.HarnessCapabilities(tools=core.ToolUse.CLI, turn_limit=True, replayable=True)
TRAJECTORY = "mini-swe-agent.traj.json"
"""Name of the file that the agent writes of each run."""
_STOPS = {
    "Submitted": core.StopReason.SUBMITTED,
    "LimitsExceeded": core.StopReason.TURN_LIMIT,
    "TimeExceeded": core.StopReason.BUDGET,
    "RepeatedFormatError": core.StopReason.MALFORMED,
    "BudgetExceeded": core.StopReason.BUDGET,
    "ContextExceeded": core.StopReason.CONTEXT_LIMIT,
}
"""The agent's exit status, or the error that ended it, and what we call it."""


class Miniswe(core.Harness):
    """Drives mini-swe-agent's own agent class, unmodified, in a thread."""

    name = "miniswe"
    version = f"{__version__} (mini-swe-agent {stock.__version__})"
    capabilities = CAPABILITIES

    def __init__(self, config: MinisweConfig | None = None) -> None:
        self._config = config or MinisweConfig()
        self._settings = Settings(self._config)
        self.settings_read = self._settings.whole

    async def run(
        self, task: core.Task, sandbox: core.Sandbox, model: core.ModelEndpoint,
        tools: Sequence[core.Tool], limits: core.Limits,
    ) -> core.HarnessResult:  # fmt: skip
        """Run one task. Raises ModelError and SandboxError untouched, and what a template raises."""
        said, bridge, instruction = self._settings, core.ThreadBridge(), task.instruction
        if tools:
            command = await core.install_tool_client(sandbox, await sandbox.expose_model(model), tools)
            instruction = f"{instruction}\n\n{command.instructions}"
        cwd, uname = await surroundings(sandbox, said.environment.get("cwd", ""), task.workdir)
        environment = SandboxEnvironment(sandbox, bridge, uname, **{**said.environment, "cwd": cwd})
        steps = [limit for limit in (said.agent.get("step_limit"), limits.turns) if limit]
        async with core.ChatClient(model, limit_s=self._config.model_timeout_s) as client:
            asks = said.model_class(
                lambda request: bridge.wait(client.ask(request)), **{**said.model, "model_name": model.model}
            )
            agent = said.agent_class(asks, environment, **{**said.agent, "step_limit": min(steps, default=0)})
            try:
                status = (await bridge.drive(lambda: agent.run(instruction))).get("exit_status")
            except (core.BudgetExceeded, core.ContextExceeded) as error:
                return _result(agent, type(error).__name__, str(error))
        return _result(agent, str(status), f"mini-swe-agent ended with {status}")


def _result(agent: stock.DefaultAgent, status: str, message: str) -> core.HarnessResult:
    stop = _STOPS.get(status, core.StopReason.ERROR)
    if status == "LimitsExceeded" and 0 < agent.config.cost_limit <= agent.cost:
        stop = core.StopReason.BUDGET
    extras = [said.get("extra", {}) for said in agent.messages]
    malformed = sum(extra.get("interrupt_type") == "FormatError" for extra in extras)
    return core.HarnessResult(
        stop=stop,
        answer=_utf8(extras[-1].get("submission", "")) if stop is core.StopReason.SUBMITTED else None,
        turns=malformed + sum(said.get("role") == "assistant" for said in agent.messages),
        malformed_calls=malformed,
        message=_utf8(message),
        artifacts={TRAJECTORY: json.dumps(agent.save(None), indent=2).encode()},
    )


def _utf8(text: object) -> str:
    return str(text).encode("utf-8", "replace").decode()
