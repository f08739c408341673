"""The harness `command`: any executable that keeps the contract."""

from __future__ import annotations

import hashlib
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from orchard_core.errors import ConfigError
from orchard_core.harness.contract import SettingsRead
from orchard_core.harness.external.environment import ExternalProgram
from orchard_core.harness.external.harness import ExternalHarness
from orchard_core.types.harness import HarnessCapabilities, ToolUse


class CommandConfig(BaseModel):
    """Options of `command`."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    program: str
    """The program and its arguments, quoted as for a shell; it runs beside the driver with your rights. An
    argument that names a file here is handed on as an absolute path."""
    tools: Literal["mcp", "none"] = "mcp"
    """mcp: it uses the tools at ORCHARD_TOOLS_URL; none: it does not, and tasks with tools are refused."""
    turn_limit: bool = True
    """It keeps ORCHARD_MAX_TURNS."""
    env: Mapping[str, str] = Field(default_factory=dict)
    """Further variables for it; never a place for secrets."""
    options: Mapping[str, JsonValue] = Field(default_factory=dict)
    """Handed on in the task file."""


class CommandHarness(ExternalHarness, SettingsRead):
    """Runs a program for each task. Raises ConfigError when there is no such program."""

    def __init__(self, config: CommandConfig) -> None:
        self._config = config
        argv = shlex.split(config.program)
        found = shutil.which(argv[0]) if argv else None
        if found is None:
            raise ConfigError(
                f"there is no program {config.program!r} to run as a harness",
                hint=_hint(argv),
            )
        words = (str(Path(word).absolute()) if Path(word).is_file() else word for word in argv[1:])
        self._program = ExternalProgram(
            argv=(str(Path(found).absolute()), *words), env=config.env, options=config.options
        )

    @property
    def name(self) -> str:
        """`command`."""
        return "command"

    @property
    def version(self) -> str:
        """Its command line and a digest of the files named there: a program that was changed is another
        harness."""
        words = (Path(word).name if Path(word).is_file() else word for word in self._program.argv)
        return " ".join([*words, self.settings_read[:12]])

    @property
    def settings_read(self) -> str:
        """A digest of its command line and of the files named there."""
        digest = hashlib.sha256()
        for word in self._program.argv:
            path = Path(word)
            content = path.read_bytes() if path.is_file() else word.encode("utf-8", "surrogateescape")
            digest.update(f"{len(content)} ".encode() + content)
        return digest.hexdigest()

    @property
    def capabilities(self) -> HarnessCapabilities:
        """What its options say."""
        return HarnessCapabilities(tools=ToolUse(self._config.tools), turn_limit=self._config.turn_limit)

    async def program(self) -> ExternalProgram:
        """The program."""
        return self._program


def _hint(argv: Sequence[str]) -> str:
    if argv and Path(argv[0]).is_file():
        return f"{argv[0]} is there, but not executable: chmod +x {shlex.quote(argv[0])}"
    return "name an executable file, as in command:./my-harness.sh"
