"""Replacing what is not ours in a recorded request, and keeping its shape."""

from __future__ import annotations

import re
from typing import Any

from orchard_core.gateway.scripted.interface import SENTINEL
from tests.gateway.golden.replay import INSTRUCTION, SOLUTION

OURS = (INSTRUCTION, SOLUTION.answer, *(step.command for step in SOLUTION.steps))
SHORT = 24
"""Strings up to this length are names, kinds and the like."""
_HEADER = re.compile(r"x-anthropic-billing-header:")
_WORDS = re.compile(r"[A-Za-z0-9_./:+-]{1,60}")
"""One word: an identifier, whatever its length up to this."""
_RANDOM = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{32,}|(?:ses|prt|msg)_\w{12,}|session_\S+")
_FILLER = re.compile(r"(?:text|id) of \d+ characters( with .*)?", re.DOTALL)
PROSE = frozenset({"description", "title", "definition", "instructions", "$comment"})
"""Keys whose text is always somebody's prose."""


def scrub(value: Any, key: str = "") -> Any:
    """The same JSON with prose replaced by filler that tells its length, random ids by one of their kind."""
    if isinstance(value, dict):
        return {name: scrub(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [scrub(inner, key) for inner in value]
    return _text(value, key) if isinstance(value, str) else value


def _text(text: str, key: str) -> str:
    if _FILLER.fullmatch(text):
        return text
    if any(ours and ours in text for ours in OURS) and len(text) < 500:
        return text
    if header := _HEADER.match(text):
        return f"{header[0]} filler"
    if _RANDOM.search(text):
        return f"id of {len(text)} characters"
    if key not in PROSE and (len(text) <= SHORT or _WORDS.fullmatch(text)):
        return text
    marks = [mark for mark in (INSTRUCTION, SENTINEL) if mark in text]
    return f"text of {len(text)} characters{' with ' if marks else ''}{' '.join(marks)}"
