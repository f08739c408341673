"""The judge's prompt: a file beside this module, known by its number and its content hash."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from orchard_core.errors import ConfigError

LATEST = 1
"""The newest template's number. A changed text is a new file with a new number."""

_PLACE = re.compile(r"\{\{(\w+)\}\}")
_PART = re.compile(r"^\[(system|user|repair)\]\n", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """One prompt."""

    version: int
    """Its number."""
    text: str
    """The whole file."""
    parts: Mapping[str, str]
    """`system`, `user` and `repair`, with `{{name}}` where something is put in."""

    @property
    def sha256(self) -> str:
        """Hash of the file, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def fill(self, part: str, values: Mapping[str, str]) -> str:
        """A part with its values put in, in one pass: what is put in is never looked at again."""
        return _PLACE.sub(lambda place: values[place[1]], self.parts[part])


@cache
def template(version: int = LATEST) -> Template:
    """The template of that number. Raises ConfigError when there is none."""
    file = files(__package__) / "prompts" / f"{version}.txt"
    if not file.is_file():
        raise ConfigError(f"there is no judge's prompt {version}", hint=f"the newest is {LATEST}")
    text = file.read_text(encoding="utf-8")
    _, *pieces = _PART.split(text)
    parts = dict(zip(pieces[::2], (piece.strip("\n") for piece in pieces[1::2]), strict=True))
    return Template(version=version, text=text, parts=parts)
