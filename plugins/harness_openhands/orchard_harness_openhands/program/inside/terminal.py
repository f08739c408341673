"""OpenHands' own terminal over a shell in the sandbox.

Sessions, time-outs, cutting and words to the model are the stock ones; only the terminal below them is ours.
"""

# mypy: disable-error-code="import-not-found", allow-subclassing-any
from __future__ import annotations

import time

from openhands.tools.terminal import TerminalAction, TerminalObservation
from openhands.tools.terminal.constants import CMD_OUTPUT_PS1_BEGIN, CMD_OUTPUT_PS1_END
from openhands.tools.terminal.impl import TerminalExecutor
from openhands.tools.terminal.metadata import CmdOutputMetadata
from openhands.tools.terminal.terminal.interface import TerminalInterface, parse_ctrl_key
from openhands.tools.terminal.terminal.terminal_session import TerminalSession
from orchard_program import Command, Sandbox

_SHELL = "command -v bash >/dev/null || { echo OpenHands needs bash; exit 127; }; exec bash -i 2>&1 9>&1"
_ENVIRONMENT = {"PS2": "", "GIT_PAGER": "cat", "PAGER": "cat"}
_INIT = f"set +H; export PROMPT_COMMAND='export PS1=\"{CmdOutputMetadata.to_ps1_prompt()}\"' PS2=''\n"
_START_S = 30.0
_SCREEN = 2_000_000
_SIGNALS = {"C-c": 2, "C-z": 15}
_KEYS = {"ENTER": "\n", "TAB": "\t", "BS": "\x7f", "ESC": "\x1b"}


class SandboxTerminal(TerminalInterface):
    """An interactive bash over pipes. What is typed is echoed, as the stock session expects of a terminal."""

    def __init__(self, sandbox: Sandbox, work_dir: str) -> None:
        super().__init__(work_dir)
        self._sandbox = sandbox
        self._screen = ""

    def initialize(self) -> None:
        """Start the shell, and wait for its first prompt. Raises RuntimeError when none comes."""
        self._shell = Command(self._sandbox, _SHELL, cwd=self.work_dir, env=_ENVIRONMENT)
        self._shell.give(_INIT)
        deadline = time.monotonic() + _START_S
        while not CmdOutputMetadata.matches_ps1_metadata(self.read_screen()):
            if self.closed or time.monotonic() > deadline:
                raise RuntimeError(f"there is no shell in the sandbox: {self._screen.strip()[-500:]}")
            time.sleep(0.01)
        self.clear_screen()

    def close(self) -> None:
        """End the shell and everything below it."""
        self._shell.kill()
        self._closed = True

    def send_keys(self, text: str, enter: bool = True) -> None:
        """Type. Control keys become signals, C-d the end of the input."""
        key = parse_ctrl_key(text)
        if key in _SIGNALS:
            self._shell.signal(_SIGNALS[key])
        elif key == "C-d":
            self._shell.give("", end=True)
        elif text in _KEYS:
            self._shell.give(_KEYS[text])
        else:
            line = f"{text}\n" if enter and not text.endswith("\n") else text
            self._screen = self.read_screen() + line
            # There is no /dev/tty; descriptor 9 is the screen, wherever the shell's own output goes.
            self._shell.give(line.replace("> /dev/tty; exit", ">&9; exit"))

    def read_screen(self) -> str:
        """What was typed and written since the prompt before the last command."""
        self._screen = (self._screen + self._shell.take().replace("\r", ""))[-_SCREEN:]
        self._closed = self._shell.ended
        return self._screen

    def clear_screen(self) -> None:
        """Forget all but the last prompt."""
        start, end = self._screen.rfind(CMD_OUTPUT_PS1_BEGIN), self._screen.rfind(CMD_OUTPUT_PS1_END)
        self._screen = self._screen[start:] if 0 <= start <= end else ""

    def interrupt(self) -> bool:
        """As Ctrl+C."""
        self.send_keys("C-c")
        return True

    def is_running(self) -> bool:
        """Whether no prompt stands at the end of the screen."""
        return not self.read_screen().rstrip().endswith(CMD_OUTPUT_PS1_END.rstrip())


class SandboxTerminalExecutor(TerminalExecutor):
    """The stock executor, on sessions in the sandbox; the first one starts with the first command."""

    def __init__(self, sandbox: Sandbox, work_dir: str) -> None:
        self._sandbox, self._working_dir = sandbox, work_dir
        self._pool = self._session = None

    def __call__(self, action: TerminalAction, conversation: object = None) -> TerminalObservation:
        """Run an action; when the shell has ended, in a new one, which the stock executor then says."""
        if self._session is None:
            self._open_session()
        elif self._session.terminal.closed:
            self._session.close()
        return super().__call__(action, conversation)

    def _reset_single_session(self) -> TerminalObservation:
        self._session.close()
        self._open_session()
        return TerminalObservation.from_text(text=self._RESET_TEXT, command="[RESET]", exit_code=0)

    def _open_session(self) -> None:
        self._session = TerminalSession(SandboxTerminal(self._sandbox, self._working_dir))
        self._session.initialize()
