"""A program that runs inside the sandbox, and how it ended."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field

from orchard_core.errors import HarnessCrashed, HarnessError, HarnessFlooded, HarnessHomeLost, HarnessHung
from orchard_core.sandbox.contract import Sandbox
from orchard_core.types.sandbox import FileInput

_SAID = 2000
"""Characters of a program's last words that an error shows."""


def private_home(sandbox: Sandbox) -> str:
    """The HOME of a program in this sandbox: the same path in every rollout, for it may stand in prompts, and
    one of its own where sandboxes share their paths."""
    return "/tmp/harness" if sandbox.capabilities.private_paths else f"/tmp/harness-{sandbox.id}"  # noqa: S108


@dataclass(frozen=True, slots=True, kw_only=True)
class InsideProgram:
    """What to run. It gets no variable of the driver's."""

    argv: tuple[str, ...]
    """The program, by absolute path or looked up on the sandbox's PATH, and its arguments."""
    name: str = ""
    """What messages call it; empty: as argv[0]."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to the sandbox's own environment; HOME and the XDG directories are private already."""
    files: tuple[FileInput, ...] = ()
    """Written before it starts; a relative path lies below HOME."""
    stdin: bytes = b""
    """All of its input: an instruction may be longer than an argument can be."""
    cwd: str | None = None
    """Where it runs; None: the sandbox's workdir."""
    timeout_s: float | None = None
    """Its own limit, seconds; None: only that of the rollout."""

    def environment(self, home: str) -> dict[str, str]:
        """All variables that it gets from us."""
        kinds = {"CONFIG": ".config", "CACHE": ".cache", "DATA": ".local/share", "STATE": ".local/state"}
        own = {f"XDG_{kind}_HOME": posixpath.join(home, path) for kind, path in kinds.items()}
        where = {"PWD": self.cwd} if self.cwd else {}
        return {"HOME": home, **own, **where, "TERM": "dumb", "NO_COLOR": "1", **self.env}


@dataclass(frozen=True, slots=True, kw_only=True)
class InsideLimits:
    """Bounds of what is read of a program."""

    output_bytes: int = 512 << 20
    """Standard output in all; a program that writes more is ended."""
    line_bytes: int = 32 << 20
    """A line; the rest of a longer one is left out."""
    tail_bytes: int = 64 << 10
    """What is kept of each stream's end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramEnd:
    """How a program ended."""

    program: str
    """Its name, for messages."""
    exit_code: int
    """Its own code, or 128 + n when signal n ended it."""
    limit_s: float | None = None
    """Its own limit, when that ended it."""
    flooded: bool = False
    """It wrote more than it may and was ended."""
    home_lost: bool = False
    """Its HOME is gone: something inside deleted it."""
    stdout_tail: bytes = b""
    """The end of standard output."""
    stderr_tail: bytes = b""
    """The end of standard error."""
    duration_s: float = 0.0
    """From start to end, seconds."""

    @property
    def ok(self) -> bool:
        """It ended by itself, with exit code 0."""
        return self.fault() is None

    @property
    def torn(self) -> bool:
        """Its output ends within a line: some programs leave before a long last line is out."""
        return bool(self.stdout_tail) and not self.stdout_tail.endswith(b"\n")

    @property
    def last_words(self) -> str:
        """The end of what it said, errors preferred, for people."""
        said = (self.stderr_tail.strip() or self.stdout_tail.strip()).decode("utf-8", "replace")
        return said[-_SAID:]

    def fault(self) -> HarnessError | None:
        """Why it cannot be taken for a program that did its work; None when it can."""
        if self.flooded:
            return HarnessFlooded(f"{self.program} wrote more output than is allowed and was ended")
        if self.limit_s is not None:
            return HarnessHung(
                f"{self.program} ran past its own limit of {self.limit_s:g} s{self._words()}",
                limit_s=self.limit_s,
            )
        if self.exit_code == 0:
            return None
        if self.home_lost:
            return HarnessHomeLost(
                f"the home directory of {self.program} was deleted from inside, and it "
                f"{self._how()}{self._words()}"
            )
        return HarnessCrashed(f"{self.program} {self._how()}{self._words()}")

    def _how(self) -> str:
        if self.exit_code > 128:
            return f"was ended by signal {self.exit_code - 128}"
        return f"ended with exit code {self.exit_code}"

    def _words(self) -> str:
        return f": {self.last_words}" if self.last_words else " without a word"
