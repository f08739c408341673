"""The harness `openhands`, as the contract wants it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from orchard_core import (
    ConfigError,
    ExternalProgram,
    Harness,
    HarnessCapabilities,
    HarnessResult,
    Limits,
    ModelEndpoint,
    Mount,
    Sandbox,
    Task,
    Tool,
    ToolUse,
    managed_python,
    run_external,
)
from orchard_harness_openhands import __version__
from orchard_harness_openhands.config import OpenHandsConfig

CAPABILITIES = HarnessCapabilities(tools=ToolUse.MCP, turn_limit=True, replayable=True)
OPENHANDS = "1.58.2"
_HERE = Path(__file__).parent
_QUIET = {
    "OPENHANDS_SUPPRESS_BANNER": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_TELEMETRY": "False",
    "LOG_LEVEL": "ERROR",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "HTTP_PROXY": "http://127.0.0.1:9",
}
"""Nothing is printed or asked for on the network but the gateway: the proxy is one that refuses."""


class OpenHands(Harness):
    """Runs OpenHands' agent in an interpreter of its own, one process a task."""

    def __init__(self, config: OpenHandsConfig | None = None) -> None:
        self._config = config or OpenHandsConfig()

    @property
    def name(self) -> str:
        """Its name."""
        return "openhands"

    @property
    def version(self) -> str:
        """Its version and that of OpenHands."""
        return f"{__version__} (openhands-sdk {OPENHANDS})"

    @property
    def capabilities(self) -> HarnessCapabilities:
        """It connects to the tools' MCP server, counts turns, and its conversation is all its state."""
        return CAPABILITIES

    async def mounts(self) -> Sequence[Mount]:
        """Nothing is shown inside, but this is when the interpreter is made. Raises ConfigError."""
        await interpreter(os.environ)
        return ()

    async def run(
        self, task: Task, sandbox: Sandbox, model: ModelEndpoint, tools: Sequence[Tool], limits: Limits
    ) -> HarnessResult:
        """Run one task. Raises as `run_external` does, and ConfigError without an interpreter."""
        python = await interpreter(os.environ)
        program = ExternalProgram(
            argv=(str(python), "-I", str(_HERE / "program")),
            env=_QUIET,
            options=self._config.model_dump(mode="json"),
        )
        return await run_external(
            program, task=task, sandbox=sandbox, model=model, tools=tools, limits=limits
        )


async def interpreter(environment: Mapping[str, str]) -> Path:
    """ORCHARD_OPENHANDS_PYTHON, or one that is made once. Raises ConfigError."""
    named = environment.get("ORCHARD_OPENHANDS_PYTHON")
    if not named:
        requirements = _HERE / "requirements.txt"
        return await managed_python("openhands", requirements, python="3.12", size="about 740 MB")
    found = shutil.which(named)
    if found is None:
        raise ConfigError(
            f"ORCHARD_OPENHANDS_PYTHON is {named!r}, which is no program",
            hint=f"name a Python 3.12 with openhands-sdk {OPENHANDS} and openhands-tools, or unset it",
        )
    return Path(found)
