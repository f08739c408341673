"""A browser that has shown an administrator's key, and is let in for a while.

Browsers send no headers of ours, and a key in an address ends in histories and logs. So the key comes once,
in the body of a form, and what stays in the browser is a signed note of which key it was: scripts cannot read
it, other sites cannot send it, every replica knows it, and it ends with its key.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from typing import Protocol, runtime_checkable

from orchard_env.service.seams import Tenancy, Tenant

COOKIE = "orchard-env-status"
"""Its name."""
_TOKEN = re.compile(r"(\d{1,12})\.([A-Za-z0-9_-]{0,64})\.([0-9a-f]{64})")


@runtime_checkable
class KnowsKeys(Protocol):
    """A tenancy that can say whose a key is without seeing it again."""

    def holder(self, key_id: str) -> Tenant | None:
        """Whose it is; None when it is revoked, expired or unknown."""


class StatusSessions:
    """Makes and reads the cookie."""

    def __init__(self, secret: bytes, tenancy: Tenancy, *, lasts_s: float) -> None:
        self._secret = secret
        self._tenancy = tenancy
        self._lasts_s = lasts_s

    def cookie(self, tenant: Tenant, *, secure: bool) -> str:
        """The header's value that lets an administrator's browser in."""
        until = int(time.time() + self._lasts_s)
        told = f"{until}.{tenant.key_id}"
        return self._written(f"{told}.{self._mac(told)}", int(self._lasts_s), secure=secure)

    def no_cookie(self, *, secure: bool) -> str:
        """The one that lets it out."""
        return self._written("", 0, secure=secure)

    def _written(self, value: str, age_s: int, *, secure: bool) -> str:
        safe = "; Secure" if secure else ""
        return f"{COOKIE}={value}; Path=/status; Max-Age={age_s}; HttpOnly; SameSite=Strict{safe}"

    def admits(self, cookie: str) -> bool:
        """Whether it lets in now."""
        found = _TOKEN.fullmatch(cookie)
        if found is None:
            return False
        until, key_id, mac = found.groups()
        if not hmac.compare_digest(mac, self._mac(f"{until}.{key_id}")) or int(until) < time.time():
            return False
        if not isinstance(self._tenancy, KnowsKeys):
            return True
        holder = self._tenancy.holder(key_id)
        return holder is not None and holder.is_admin

    def _mac(self, told: str) -> str:
        return hmac.new(self._secret, f"orchard-status\0{told}".encode(), hashlib.sha256).hexdigest()
