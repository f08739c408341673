"""Making, rotating and revoking keys, and setting tenants."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from orchard_core import ConfigError
from orchard_env.service.seams import Scope
from orchard_env.service.tenancy.books import Book
from orchard_env.service.tenancy.quota import Quota
from orchard_env.service.tenancy.records import Access, KeyRecord, TenantRecord
from orchard_env.service.tenancy.secret import NewSecret, known_secret, matches, new_secret

RUN = (Scope.READ, Scope.USE, Scope.CREATE)
"""What an ordinary key may do: everything with its tenant's own sandboxes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A key that was just made."""

    text: str
    """The key itself: shown once, kept nowhere."""
    record: KeyRecord
    """What is kept of it."""


async def create_key(
    book: Book,
    tenant: str,
    *,
    scopes: Sequence[Scope] = RUN,
    note: str = "",
    lasts_s: float | None = None,
    now: float | None = None,
) -> Issued:
    """A new key for a tenant, for `lasts_s` seconds or for good. Raises ConfigError for what is no name."""
    secret, made = new_secret(), time.time() if now is None else now

    def change(access: Access) -> KeyRecord:
        if any(key.id == secret.id for key in access.keys):  # one in 2^48 for each key there is
            raise ConfigError("two keys were made with the same id", hint="run the command again")
        return _record(secret, tenant, tuple(scopes), note, made, None if lasts_s is None else made + lasts_s)

    return Issued(text=secret.text, record=await book.change(change))


async def adopt_key(
    book: Book, text: str, tenant: str, *, scopes: Sequence[Scope] = RUN, note: str = ""
) -> KeyRecord:
    """Take in a key that exists already, such as one that a cluster keeps; one that is known, good or not,
    stays as it is. Raises ConfigError for what is no key, and for another key of its id."""
    secret, made = known_secret(text), time.time()

    def change(access: Access) -> KeyRecord:
        found = next((key for key in access.keys if key.id == secret.id), None)
        if found is None:
            return _record(secret, tenant, tuple(scopes), note, made, None)
        if not matches(secret.text, found):
            raise ConfigError(f"another key has the id {secret.id}", hint="make a new one")
        return found

    return await book.change(change)


async def rotate_key(book: Book, key_id: str, *, overlap_s: float, lasts_s: float | None = None) -> Issued:
    """A new key in place of an old one, which stays good for `overlap_s` seconds more. Raises ConfigError
    when there is no such key, or it is not good any more."""
    old = find_key(await book.read(), key_id)
    now = time.time()
    if not old.good(now) or old.replaced_by:
        raise ConfigError(
            f"the key {key_id} is {_standing(old, now)}", hint="make a new one with orchard env keys create"
        )
    issued = await create_key(book, old.tenant, scopes=old.scopes, note=old.note, lasts_s=lasts_s, now=now)

    def change(access: Access) -> KeyRecord:
        found = find_key(access, key_id)
        ends = now + overlap_s if found.expires is None else min(found.expires, now + overlap_s)
        return _changed(found, expires=ends, replaced_by=issued.record.id)

    await book.change(change)
    return issued


async def revoke_key(book: Book, key_id: str) -> KeyRecord:
    """Refuse a key from now on; once revoked it stays so. Raises ConfigError when there is no such key."""

    def change(access: Access) -> KeyRecord:
        found = find_key(access, key_id)
        return found if found.revoked is not None else _changed(found, revoked=time.time())

    return await book.change(change)


async def set_tenant(
    book: Book, name: str, *, weight: float | None = None, limits: Mapping[str, float] | None = None
) -> TenantRecord:
    """Set a tenant's weight, limits of its quota by name, or both; what is not named stays as it is. Raises
    ConfigError for what is no name and for a limit that cannot be."""

    def change(access: Access) -> TenantRecord:
        before = next((tenant for tenant in access.tenants if tenant.name == name), None)
        try:
            before = before or TenantRecord(name=name)
            return TenantRecord(
                name=name,
                weight=before.weight if weight is None else weight,
                quota=_changed_quota(before.quota, limits or {}),
                revision=before.revision + 1,
            )
        except ValidationError as error:
            raise _bad_name(name) from error

    return await book.change(change)


def _changed_quota(quota: Quota | None, limits: Mapping[str, float]) -> Quota | None:
    if not limits:
        return quota
    return Quota.model_validate({**(quota or Quota()).model_dump(), **limits})


def find_key(access: Access, key_id: str) -> KeyRecord:
    """The key of that id. Raises ConfigError."""
    for key in access.keys:
        if key.id == key_id:
            return key
    raise ConfigError(f"there is no key {key_id}", hint="orchard env keys list shows every id")


def _record(
    secret: NewSecret,
    tenant: str,
    scopes: tuple[Scope, ...],
    note: str,
    created: float,
    expires: float | None,
) -> KeyRecord:
    try:
        return KeyRecord(
            id=secret.id,
            tenant=tenant,
            scopes=scopes,
            note=note,
            salt=secret.salt,
            digest=secret.digest,
            created=created,
            expires=expires,
        )
    except ValidationError as error:
        raise _bad_name(tenant) from error


def _bad_name(name: str) -> ConfigError:
    return ConfigError(
        f"{name!r} cannot name a tenant", hint="use at most 63 small letters, digits, and . _ - within"
    )


def _changed(key: KeyRecord, **fields: object) -> KeyRecord:
    return key.model_copy(update={**fields, "revision": key.revision + 1})


def _standing(key: KeyRecord, now: float) -> str:
    return status(key, now) if not key.replaced_by else f"already replaced by {key.replaced_by}"


def status(key: KeyRecord, now: float) -> str:
    """`good`, `revoked` or `expired`."""
    if key.revoked is not None:
        return "revoked"
    return "good" if key.good(now) else "expired"
