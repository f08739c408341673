"""Values of an agent's answer, which is a sandbox's word: of the kind that they should be, or TypeError."""

from __future__ import annotations

import math
from typing import Any

_WHOLE_MAX = 1 << 62
_TEXT_MAX = 64 << 10


def text(value: Any) -> str:
    """Text of a sensible length."""
    if not isinstance(value, str) or len(value) > _TEXT_MAX:
        raise TypeError(f"no text: {value!r:.60}")
    return value


def whole(value: Any) -> int:
    """A whole number that others can hold, too."""
    if isinstance(value, bool) or not isinstance(value, int) or not -_WHOLE_MAX < value < _WHOLE_MAX:
        raise TypeError(f"no whole number: {value!r:.60}")
    return value


def count(value: Any) -> int:
    """A whole number that is not negative."""
    if whole(value) < 0:
        raise TypeError(f"no count: {value!r:.60}")
    return int(value)


def number(value: Any) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"no number: {value!r:.60}")
    return value if isinstance(value, float) else float(whole(value))


def number_or_none(value: Any) -> float | None:
    """A finite number, or nothing."""
    return None if value is None else number(value)
