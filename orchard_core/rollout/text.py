"""Making text that came from outside safe to store, and short enough to keep."""

from __future__ import annotations

ERROR_LIMIT = 8 << 10
LOG_LIMIT = 64 << 10


def storable(text: str) -> str:
    """The text with each lone surrogate written out as an escape, so that UTF-8 can carry it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


def excerpt(text: str, limit: int) -> str:
    """Head and tail of a long text, storable; the cut says how much is missing."""
    if len(text) > limit:
        half = limit // 2
        text = f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"
    return storable(text)


def storable_tree(value: object) -> object:
    """The same plain data with every string in it made storable, keys included."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable_tree(key): storable_tree(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [storable_tree(item) for item in value]
    return value
