"""API keys as text: made, taken apart, and checked.

A key is `ork_ID_SECRET`: 12 hex digits by which its record is found at once, and 256 random bits. The bits
are hashed once, with a salt of the key's own. A slow hash, as passwords need, would protect nothing: nobody
can guess 256 random bits, however fast the hash; and whoever sends keys could keep the service busy with it.
"""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import dataclass

from orchard_core import ConfigError
from orchard_env.service.tenancy.records import KeyRecord

PATTERN = r"ork_[0-9a-f]{12}_[A-Za-z0-9_-]{43}"
"""What every key looks like, for whoever searches texts for leaked ones."""
_KEY = re.compile(r"ork_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_NOBODY_SALT = secrets.token_hex(16)
_NOBODY_DIGEST = secrets.token_hex(32)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSecret:
    """A key that was just made, or given: the only moment at which its text is known."""

    text: str
    """What its owner gets."""
    id: str
    """What it is found by."""
    salt: str
    """For its record."""
    digest: str
    """For its record."""


def new_secret() -> NewSecret:
    """256 random bits, an id, and the hash."""
    key_id, secret, salt = secrets.token_hex(6), secrets.token_urlsafe(32), secrets.token_hex(16)
    return NewSecret(text=f"ork_{key_id}_{secret}", id=key_id, salt=salt, digest=_digest(salt, secret))


def known_secret(text: str) -> NewSecret:
    """A key that exists already, with a new salt and hash. Raises ConfigError for what is no key."""
    found = _KEY.fullmatch(text)
    if found is None:
        raise ConfigError(
            "what was given is no API key",
            hint=f"a key looks like {PATTERN}; orchard env keys create makes one",
        )
    salt = secrets.token_hex(16)
    return NewSecret(text=text, id=found[1], salt=salt, digest=_digest(salt, found[2]))


def key_id(text: str) -> str | None:
    """The id in a key; None for what is no key of ours."""
    found = _KEY.fullmatch(text)
    return found[1] if found else None


def matches(text: str, record: KeyRecord | None) -> bool:
    """Whether the text is that key; takes as long for a wrong secret, for no record and for no key."""
    found = _KEY.fullmatch(text)
    salt, digest = (record.salt, record.digest) if record else (_NOBODY_SALT, _NOBODY_DIGEST)
    same = hmac.compare_digest(_digest(salt, found[2] if found else ""), digest)
    return same and record is not None and found is not None and found[1] == record.id


def _digest(salt: str, secret: str) -> str:
    return hmac.digest(bytes.fromhex(salt), secret.encode(), "sha256").hex()
