"""What one generated task is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal

from pydantic import JsonValue

WORKDIR = "/workspace"
"""Where every task of the workbench plays."""

Expected = Mapping[str, "Check"]
"""What each output must be, by path relative to the working directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """How one output is judged."""

    kind: Literal["text", "lines", "json", "bytes", "absent", "python"]
    """text: equal but for blanks at either end; lines: the same, line by line; json: equal as data; bytes:
    byte for byte; absent: no such path; python: a module whose function gives the expected answers."""
    value: JsonValue = None
    """The expected content; bytes as Latin-1 text; for python a list of [function, arguments, result]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command of the known solution."""

    thought: str
    """Why."""
    command: str
    """What."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One generated task."""

    instruction: str
    """What the agent is told."""
    files: Mapping[str, str | bytes]
    """What lies in the working directory at the start."""
    expected: Expected
    """What must lie there at the end."""
    steps: tuple[Step, ...]
    """The known solution."""
    difficulty: Literal["easy", "medium", "hard"] = "easy"
    """For reports."""


Family = Callable[[Random], Problem]
"""Makes a problem; the same random state gives the same problem on every machine."""

NAMES = (
    "amber",
    "birch",
    "cedar",
    "delta",
    "ember",
    "falcon",
    "garnet",
    "harbor",
    "indigo",
    "jasper",
    "kestrel",
    "lotus",
    "maple",
    "nectar",
    "onyx",
    "pepper",
    "quartz",
    "raven",
    "saffron",
    "tundra",
    "umber",
    "violet",
    "willow",
    "yarrow",
    "zephyr",
    "anchor",
    "beacon",
    "copper",
    "dune",
    "echo",
    "fjord",
    "grove",
)
"""Harmless words for names of things."""
