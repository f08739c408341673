"""OpenHands' own terminal over a shell in the sandbox.

Sessions, time-outs, cutting and words to the model are the stock ones; only the terminal below them is ours.
"""

# mypy: disable-error-code="import-not-found", allow-subclassing-any
from __future__ import annotations

import time
from typing import Any, ClassVar

from openhands.tools.terminal import TerminalAction, TerminalObservation, TerminalTool
from openhands.tools.terminal.constants import CMD_OUTPUT_PS1_BEGIN, CMD_OUTPUT_PS1_END
from openhands.tools.terminal.impl import TerminalExecutor
from openhands.tools.terminal.metadata import CmdOutputMetadata
from openhands.tools.terminal.terminal.interface import TerminalInterface
from openhands.tools.terminal.terminal.terminal_session import TerminalSession
from orchard_program import Sandbox, Shell, read_task

_INIT = f"set +H; export PROMPT_COMMAND='export PS1=\"{CmdOutputMetadata.to_ps1_prompt()}\"' PS2=''"


class SandboxTerminal(TerminalInterface):
    """The terminal that a stock session types into and reads."""

    def initialize(self) -> None:
        """Start the shell, and wait for its first prompt. Raises RuntimeError when none comes."""
        self._shell = Shell(Sandbox.given(), cwd=self.work_dir, env={"GIT_PAGER": "cat", "PAGER": "cat"})
        self._shell.type(_INIT, shown="")
        deadline = time.monotonic() + 30.0
        while not CmdOutputMetadata.matches_ps1_metadata(screen := self.read_screen()):
            if self._closed or time.monotonic() > deadline:
                raise RuntimeError(f"OpenHands' terminal found no bash in the sandbox: {screen[-500:]}")
            time.sleep(0.01)
        self.clear_screen()

    def close(self) -> None:
        """End the shell and everything below it."""
        self._shell.kill()
        self._closed = True

    def send_keys(self, text: str, enter: bool = True) -> None:
        """Type; the stock session's /dev/tty is descriptor 9 here."""
        self._shell.type(text.replace("> /dev/tty; exit", ">&9; exit"), enter=enter, shown=text)

    def read_screen(self) -> str:
        """What was typed and written since the prompt before the last command."""
        screen: str = self._shell.screen()
        self._closed = self._shell.ended
        return screen

    def clear_screen(self) -> None:
        """Forget all but the last prompt."""
        self._shell.forget(max(self.read_screen().rfind(CMD_OUTPUT_PS1_BEGIN), 0))

    def interrupt(self) -> bool:
        """As Ctrl+C."""
        self._shell.type("C-c")
        return True

    def is_running(self) -> bool:
        """Whether no prompt stands at the end of the screen."""
        return not self.read_screen().rstrip().endswith(CMD_OUTPUT_PS1_END.rstrip())


class SandboxTerminalExecutor(TerminalExecutor):
    """The stock executor, on a session in the sandbox."""

    _session: Any
    _pool = None

    def __init__(self) -> None:
        self._open_session()

    def __call__(self, action: TerminalAction, conversation: object = None) -> TerminalObservation:
        """Run an action; when the shell has ended, in a new one, which the stock executor then says."""
        if self._session.terminal.closed:
            self._session.close()
        return super().__call__(action, conversation)

    def _reset_single_session(self) -> TerminalObservation:
        self._session.close()
        self._open_session()
        return TerminalObservation.from_text(text=self._RESET_TEXT, command="[RESET]", exit_code=0)

    def _open_session(self) -> None:
        self._session = TerminalSession(SandboxTerminal(read_task().workdir))
        self._session.initialize()


class SandboxTerminalTool(TerminalTool):
    """The stock tool with that executor."""

    name: ClassVar[str] = TerminalTool.name

    @classmethod
    def create(cls, conv_state: Any) -> Any:
        """As the stock tool's."""
        return super().create(conv_state, executor=SandboxTerminalExecutor())
