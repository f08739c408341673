"""An interactive shell in the sandbox, for agents that type into a terminal."""

from __future__ import annotations

import re
from collections.abc import Mapping

from orchard_program.command import Command
from orchard_program.sandbox import Sandbox

_BASH = (
    "command -v bash >/dev/null || { echo there is no bash; exit 127; }; exec bash --noediting -i 2>&1 9>&1"
)
_SCREEN = 2_000_000
_SIGNALS = {"c": 2, "z": 15}
_KEYS = {"ENTER": "\n", "TAB": "\t", "BS": "\x7f", "ESC": "\x1b"}
_CONTROL = re.compile(r"(?:C-|CTRL[-+])([a-z])", re.IGNORECASE)


class Shell:
    """A bash over pipes that looks like one in a terminal: what is typed is echoed, and control keys work.

    There is no /dev/tty, but descriptor 9 is the screen, wherever the shell's own output goes. Directory,
    variables and functions stay from one line to the next.
    """

    def __init__(self, sandbox: Sandbox, *, cwd: str, env: Mapping[str, str]) -> None:
        """Start it. Raises SandboxRefused."""
        self._bash = Command(sandbox, _BASH, cwd=cwd, env=env)
        self._screen = ""

    @property
    def ended(self) -> bool:
        """It has ended, as far as the screen was looked at."""
        return self._bash.ended

    def screen(self) -> str:
        """What was typed and written, the last two million characters."""
        self._screen = (self._screen + self._bash.take().replace("\r", ""))[-_SCREEN:]
        return self._screen

    def forget(self, count: int) -> None:
        """Take so many characters off the top of the screen."""
        self._screen = self._screen[count:]

    def type(self, text: str, *, enter: bool = True, shown: str | None = None) -> None:
        """Type a text, or a key by its name: C-c and C-z end what runs, C-d ends the input, and with it the
        shell. `shown` is echoed in the text's place."""
        control = _CONTROL.fullmatch(text.strip())
        key = control[1].lower() if control else ""
        if key in _SIGNALS:
            self._bash.signal(_SIGNALS[key])
        elif key == "d":
            self._bash.give("", end=True)
        elif text in _KEYS:
            self._bash.give(_KEYS[text])
        else:
            end = "\n" if enter and not text.endswith("\n") else ""
            self._screen = self.screen() + (text if shown is None else shown) + end
            self._bash.give(text + end)

    def kill(self) -> None:
        """End it and everything below it."""
        self._bash.kill()
