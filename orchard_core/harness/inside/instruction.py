"""A task's instruction for a program that takes it as an argument."""

from __future__ import annotations

from orchard_core.types.sandbox import FileInput

_LONGEST = 96 << 10
"""Bytes; Linux takes 128 KiB in one argument."""


def instruction_argument(instruction: str, home: str) -> tuple[str, tuple[FileInput, ...]]:
    """The argument, and files to write below the program's HOME: what no argument can hold goes by a file,
    and the argument says where that is. Half a surrogate pair becomes a question mark."""
    text = instruction.encode("utf-8", "replace")
    if len(text) <= _LONGEST and b"\0" not in text:
        # A word that begins with a dash would be taken for a flag.
        return ("\n" if text.startswith(b"-") else "") + text.decode(), ()
    said = f"Your task is written in the file {home}/task.md. Read all of it, then carry it out."
    return said, (FileInput(path="task.md", content=text),)
