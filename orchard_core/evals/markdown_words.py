"""How names and figures are written in Markdown. What a task, model or plugin may have chosen is hostile."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from orchard_core.evals.attempts import Rate
from orchard_core.evals.statistics import Estimate

_LONGEST = 200
_SPECIAL = frozenset("\\`*_{}[]()<>#+-.!|~^=:@&$/\"'")
_PLAIN = frozenset("-._ /+:=()\"'")
"""What means nothing within a line: a parenthesis makes a link only after a bracket, which is never plain."""


def escape(text: str, *, longest: int = _LONGEST) -> str:
    """Text that Markdown shows as it is: no markup, link, mention, HTML, control or bidi character works."""
    kept = "".join(_shown(character) for character in text[:longest])
    if len(text) > longest:
        kept += "…"
    # A word that could be a link, a mention or an entity is only harmless character by character.
    return "".join(f"&#{ord(c)};" if c in _SPECIAL and not _harmless(c, kept) else c for c in kept)


def _harmless(character: str, text: str) -> bool:
    return character in _PLAIN and "://" not in text and "www." not in text.lower() and _begins(text)


def _begins(text: str) -> bool:
    """Its first character makes no list, quotation or heading of it."""
    return text[:1].isalnum() or text[:1] == "("


def _shown(character: str) -> str:
    kind = unicodedata.category(character)
    if kind in {"Zs", "Zl", "Zp"} or character in "\t\n\r":
        return " "
    return "�" if kind in {"Cc", "Cf", "Cs", "Co", "Cn"} else character


def code(text: str) -> str:
    """Text for a code span: what could end the span, or the table's cell, is replaced."""
    return "".join(_shown(character) for character in text).replace("`", "'").replace("|", "/")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: int) -> list[str]:
    """Lines of a table; the last `numbers` columns stand to the right. Cells are escaped already."""
    rule = ["---"] * (len(head) - numbers) + ["---:"] * numbers
    return [f"| {' | '.join(row)} |" for row in (head, rule, *rows)]


def both(rate: Rate) -> list[str]:
    """Over everything planned, and over what is valid."""
    return [estimate(rate.planned), estimate(rate.valid)]


def estimate(found: Estimate | None) -> str:
    """`61.2% [50.0%, 72.1%]`, or a dash."""
    if found is None:
        return "-"
    text = f"{found.value:.1%}"
    if found.low is None or found.high is None:
        return text
    return f"{text} [{found.low:.1%}, {found.high:.1%}]"


def number(value: float | None, form: str) -> str:
    """In a format such as `.1f`, or a dash."""
    return "-" if value is None else format(value, form)


def dollars(value: float | None) -> str:
    """`$0.0123`; what is not known is never $0."""
    return "unknown" if value is None else f"${value:,.4f}" if value else "$0"
