"""Counts each harness plugin's own lines of code: without blanks, comments, docstrings and tests.

    python tools/plugin_lines.py

Exits with 1 when one that wraps somebody else's harness has more than it may: a wrapper that grows is a fork.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

PLUGINS = Path(__file__).resolve().parents[1] / "plugins"
LIMIT = 250
WRAPPERS = frozenset({"harness_miniswe", "harness_openhands", "harness_zeroclaw", "harness_cli"})
_LAYOUT = frozenset({
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
    tokenize.ENCODING,
})  # fmt: skip


def code_lines(source: str) -> int:
    """Lines that hold a token of code. A string that stands alone, such as a docstring, is none."""
    held: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _LAYOUT:
            held.update(range(token.start[0], token.end[0] + 1))
    return len(held - set(_lone_strings(ast.parse(source))))


def _lone_strings(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def plugin_lines(plugin: Path) -> dict[str, int]:
    """Lines of each of its files, by path below it; tests and what is installed beside are left out."""
    files = sorted(plugin.glob("orchard_*/**/*.py"))
    return {str(file.relative_to(plugin)): code_lines(file.read_text(encoding="utf-8")) for file in files}


def main() -> int:
    """Print a line a plugin."""
    over = False
    for plugin in sorted(PLUGINS.glob("harness_*")):
        count = sum(plugin_lines(plugin).values())
        allowed = LIMIT if plugin.name in WRAPPERS else None
        verdict = "" if allowed is None else f"of {allowed}{'  TOO MANY' if count > allowed else ''}"
        over = over or (allowed is not None and count > allowed)
        sys.stdout.write(f"{plugin.name:20} {count:5} {verdict}".rstrip() + "\n")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
