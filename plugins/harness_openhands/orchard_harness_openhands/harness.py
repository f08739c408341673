"""The harness `openhands`, as the contract wants it."""

from __future__ import annotations

from pathlib import Path

from orchard_core import ExternalHarness, ExternalProgram, HarnessCapabilities, ToolUse, managed_python
from orchard_harness_openhands import __version__
from orchard_harness_openhands.config import OpenHandsConfig

CAPABILITIES = HarnessCapabilities(tools=ToolUse.MCP, turn_limit=True, replayable=True)
VARIABLE = "ORCHARD_OPENHANDS_PYTHON"
_HERE = Path(__file__).parent
_QUIET = {
    "OPENHANDS_SUPPRESS_BANNER": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_TELEMETRY": "False",
    "LOG_LEVEL": "ERROR",
    "ALL_PROXY": "http://127.0.0.1:9",
}
"""Nothing is printed, and nothing on the network is reached but the gateway."""


class OpenHands(ExternalHarness):
    """Runs OpenHands' agent in an interpreter of its own, one process a task. It connects to the tools' MCP
    server and counts turns; its conversation is all its state."""

    name = "openhands"
    version = f"{__version__} (openhands-sdk 1.58.2)"
    capabilities = CAPABILITIES

    def __init__(self, config: OpenHandsConfig | None = None) -> None:
        self._config = config or OpenHandsConfig()

    async def program(self) -> ExternalProgram:
        """See ExternalHarness."""
        requirements = _HERE / "requirements.txt"
        python = await managed_python(
            "openhands", requirements, python="3.12", size="about 740 MB", variable=VARIABLE
        )
        argv = (str(python), "-I", str(_HERE / "program"))
        return ExternalProgram(argv=argv, env=_QUIET, options=self._config.model_dump(mode="json"))
