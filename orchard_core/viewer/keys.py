"""Names of things in addresses."""

from __future__ import annotations

import re
from hashlib import sha256

_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,79}")
_TAKEN = frozenset({"matrix"})
"""Parts of addresses that mean something else there."""


def key_of(identity: str) -> str:
    """The id where it can stand in an address, else a hash of it."""
    if _SAFE.fullmatch(identity) and identity not in _TAKEN:
        return identity
    return "~" + sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:24]
