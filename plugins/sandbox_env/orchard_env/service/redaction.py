"""Secrets are taken out of every line of log, whoever wrote it and however they came in."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

_HIDDEN = "***"
_KEYS = re.compile(r"(ork_[0-9a-f]{12}_)[A-Za-z0-9_-]+")
"""Our API keys; which key it was stays readable."""
_NAMED = re.compile(
    r"""(?ix)
    (   \b(?:x-api-key|api[_-]?key|authorization|password|passwd|secret|token|access[_-]?token)
        ["']?\s*[=:]\s*["']?(?:bearer\s+|basic\s+)?
    |   \bbearer\s+
    )
    [^\s"'&,;)}\]]{7,}
    """
)
"""What stands after a name that secrets go by, in headers, queries, JSON and reprs."""
_IN_URL = re.compile(r"(?i)(\b[a-z][a-z0-9+.-]*://[^\s/@:]*:)[^\s/@]+(?=@)")
"""The password of a URL."""


def redacted(text: str) -> str:
    """The text without what looks like a secret."""
    text = _KEYS.sub(rf"\1{_HIDDEN}", text)
    text = _IN_URL.sub(rf"\1{_HIDDEN}", text)
    return _NAMED.sub(rf"\1{_HIDDEN}", text)


class Redacting(logging.Formatter):
    """A formatter around another one: what that one made, traces included, goes out without secrets."""

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self._inner = inner

    def format(self, record: logging.LogRecord) -> str:
        """See logging.Formatter."""
        return redacted(self._inner.format(record))


def redact_handlers(handlers: Iterable[logging.Handler]) -> None:
    """Put a Redacting around the formatter of each; once is enough."""
    for handler in handlers:
        if not isinstance(handler.formatter, Redacting):
            handler.setFormatter(Redacting(handler.formatter or logging.Formatter()))
