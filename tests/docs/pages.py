"""Fenced blocks of the pages, read as a reader would use them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "plugins").glob("*/README.md")),
]
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"\A# file: (\S+)\n")
_NEEDS = re.compile(r"\A# needs: (.+)\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class FencedBlock:
    """One fenced block."""

    language: str
    """As written after the fence."""
    body: str
    """Its text, the `# file:` line taken off."""
    line: int
    """Where it stands in its page."""
    file: str | None
    """The path a `# file: PATH` first line names: the block is that file's content."""
    needs: str | None
    """What a `# needs: ...` first line says is missing on a machine without network and keys."""


def fenced(page: Path) -> list[FencedBlock]:
    """The page's blocks in order."""
    text = page.read_text(encoding="utf-8")
    made = []
    for found in _FENCE.finditer(text):
        body = found[2]
        file, needs = _FILE.match(body), _NEEDS.match(body)
        made.append(
            FencedBlock(
                language=found[1],
                body=body[file.end() :] if file else body,
                line=text.count("\n", 0, found.start()) + 1,
                file=file[1] if file else None,
                needs=needs[1] if needs else None,
            )
        )
    return made


def page_id(page: Path) -> str:
    """A short name for test reports."""
    return str(page.relative_to(ROOT))
