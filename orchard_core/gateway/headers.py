"""What the gateway reads of a request's headers."""

from __future__ import annotations

from collections.abc import Iterable


class Headers:
    """One request's."""

    __slots__ = ("dialect", "encoding", "has_body", "key", "length")

    def __init__(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self.key = ""
        """The session key; empty: none was given."""
        self.encoding = b""
        """Content coding of the body."""
        self.length = 0
        """Bytes of the body, as far as told."""
        self.has_body = False
        """A body follows."""
        self.dialect: dict[str, str] = {}
        """Those that belong to the wire protocol and go upstream with it."""
        for name, value in headers:
            self._take(name, value)

    def _take(self, name: bytes, value: bytes) -> None:
        if name == b"authorization":
            scheme, _, key = value.partition(b" ")
            if scheme.lower() == b"bearer":
                self.key = key.strip().decode("latin-1")
        elif name == b"content-length":
            self.length, self.has_body = int(value), True
        elif name == b"x-api-key" and not self.key:
            self.key = value.decode("latin-1")
        elif name == b"transfer-encoding":
            self.has_body = True
        elif name == b"content-encoding":
            self.encoding = value.lower()
        elif name.startswith(b"anthropic-") and name in _DIALECT and len(value) <= _LONGEST:
            self.dialect[name.decode()] = value.decode("latin-1")


_DIALECT = frozenset({b"anthropic-version", b"anthropic-beta"})
_LONGEST = 1000
"""Bytes of a header that is handed on at most."""
