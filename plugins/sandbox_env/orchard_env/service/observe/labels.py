"""Values of labels: so many and no more, whatever clients call themselves."""

from __future__ import annotations

OTHER = "other"
"""What stands for all values beyond the bound."""
_LONGEST = 64


class BoundedLabel:
    """One label's values. The first so many that come are told apart, for as long as the process lives."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[str, str] = {}

    def __call__(self, value: str) -> str:
        """The value as it stands in metrics: printable, short, one of a bounded number."""
        known = self._known.get(value)
        if known is not None:
            return known
        if len(self._known) >= self._most or len(value) > 4 * _LONGEST:
            return OTHER
        return self._known.setdefault(value, harmless(value))


class Remembered:
    """The last names that were told: as many as asked for, and at most twice as many. A name is kept as its
    hash, so that long ones cost no more than short ones; once in 2**64 a new one passes for an old one."""

    def __init__(self, least: int) -> None:
        self._least = least
        self._new: set[int] = set()
        self._old: set[int] = set()

    def is_new(self, name: str) -> bool:
        """Whether it was not among them; it is now."""
        mark = hash(name)
        if mark in self._new or mark in self._old:
            return False
        self._new.add(mark)
        if len(self._new) >= self._least:
            self._old, self._new = self._new, set()
        return True


def harmless(value: str, most: int = _LONGEST) -> str:
    """Without what breaks a line, reorders it, or is no text; at most so many characters."""
    return "".join(char if char.isprintable() else "?" for char in value[:most]) or "none"
