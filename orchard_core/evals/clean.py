"""Text that came from a model, a sandbox or a task, made safe to show on a terminal."""

from __future__ import annotations

import re

_SEQUENCE = re.compile(
    r"""
    (?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]                                        # CSI: colour, cursor
  | (?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)  # OSC, DCS, ...
  | \x1b[ -/]{0,8}[0-~]                                                              # two-character escapes
    """,
    re.VERBOSE,
)
_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # C0 but tab and newline, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # they reorder the line they stand in
    "\u2028\u2029\ufeff\U000e0000-\U000e007f]"  # line separators, marks and tags nobody sees
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """Drop terminal control sequences and invisible controls; keep newlines and tabs."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _CONTROL.sub("", _SEQUENCE.sub("", text))
    return _SURROGATE.sub("\ufffd", text)


def clean_line(text: str, width: int = 200) -> str:
    """The same on one line of at most `width` characters."""
    line = " ".join(clean(text).split())
    return line if len(line) <= width else line[: max(width - 1, 0)] + "…"
