"""Output as text, piece by piece: no character is torn where a piece ends."""

from __future__ import annotations


def whole_characters(data: bytes) -> int:
    """How many bytes of `data` end with a whole character; the rest begins one whose end has not come yet.
    What can be no character counts as whole: it becomes U+FFFD either way."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        needed = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return len(data) - back if needed > back else len(data)
    return len(data)
