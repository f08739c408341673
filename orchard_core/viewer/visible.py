"""Text of models, sandboxes and tasks for a page: escaped, and what nobody could see made visible."""

from __future__ import annotations

import re
import unicodedata

from markupsafe import Markup, escape

_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # C0 but tab, newline and return; DEL; C1
    "\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f"  # they reorder or hide what stands beside them
    "\u2028\u2029\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_C0 = (
    "NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI "
    "DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US"
)
"""Names of U+0000 to U+001F; few fonts have the pictures that Unicode has for them."""


def plain(text: str) -> str:
    """The text with each hidden character in words, such as `⟨ESC⟩` and `⟨U+202E⟩`. It can be encoded and
    copied without harm."""
    return _HIDDEN.sub(lambda found: _sign(found[0]), _lines(text))


def visible(text: str) -> Markup:
    """The same as markup in which those signs are marked and named."""
    parts: list[Markup] = []
    text, at = _lines(text), 0
    for found in _HIDDEN.finditer(text):
        name = unicodedata.name(found[0], "control character")
        mark = Markup('<span class="ctl" title="{}">{}</span>').format(name.lower(), _sign(found[0]))
        parts += [escape(text[at : found.start()]), mark]
        at = found.end()
    return Markup("").join([*parts, escape(text[at:])])


def one_line(text: str, width: int = 160) -> str:
    """A short text on one line, its end cut."""
    line = " ".join(plain(text[: 4 * width]).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _sign(character: str) -> str:
    code = ord(character)
    return f"⟨{_C0.split()[code]}⟩" if code < 0x20 else f"⟨U+{code:04X}⟩"
