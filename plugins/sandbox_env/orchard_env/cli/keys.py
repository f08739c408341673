"""`orchard env keys`: make, list, rotate and revoke API keys."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchard_env.cli.place import JsonFlag, KeysFlag, RedisFlag, in_book
from orchard_env.cli.spans import seconds

if TYPE_CHECKING:
    from orchard_env.service.seams import Scope
    from orchard_env.service.tenancy.books import Book, Spread
    from orchard_env.service.tenancy.issuing import Issued
    from orchard_env.service.tenancy.records import KeyRecord

app = typer.Typer(help="Make, list, rotate and revoke API keys.", no_args_is_help=True, rich_markup_mode=None)

_SPREAD_S = 10.0
_WORDS = ("read", "run", "admin")
Expires = Annotated[
    str | None, typer.Option("--expires", metavar="SPAN", help="Refused after 90d, 12h, ...; else never.")
]

ScopeFlag = Annotated[
    list[str] | None,
    typer.Option(
        "--scope",
        metavar="SCOPE",
        help="read: look only; run: everything with its tenant's sandboxes (the default); admin: every "
        "tenant's. Repeatable.",
    ),
]


@app.command("create")
def create(
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="Whose key it is.", show_default=False)],
    scope: ScopeFlag = None,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="What it is for.")] = "",
    expires: Expires = None,
    keys: KeysFlag = None,
    redis: RedisFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Make a key and print it: the only time that it is shown."""
    from orchard_env.service.tenancy.issuing import create_key

    scopes, lasts_s = _scopes(scope or ["run"]), None if expires is None else seconds(expires)

    async def work(book: Book) -> Issued:
        return await create_key(book, tenant, scopes=scopes, note=note, lasts_s=lasts_s)

    _show_new(in_book(work, keys=keys, redis=redis), as_json)


@app.command("adopt")
def adopt(
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="Whose key it is.", show_default=False)],
    key_file: Annotated[
        Path,
        typer.Option("--key-file", metavar="FILE", help="The key alone; - reads it from standard input."),
    ],
    scope: ScopeFlag = None,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="What it is for.")] = "",
    keys: KeysFlag = None,
    redis: RedisFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Take in a key that exists already, such as one that a cluster keeps as a Secret.

    A key that is known stays as it is, so that this may be done again and again.
    """
    from orchard_env.service.tenancy.issuing import adopt_key

    scopes, text = _scopes(scope or ["run"]), _key_in(key_file)

    async def work(book: Book) -> KeyRecord:
        return await adopt_key(book, text, tenant, scopes=scopes, note=note)

    record = in_book(work, keys=keys, redis=redis)
    if as_json:
        _print_json(_shown(record))
    else:
        typer.echo(f"the key {record.id} of {record.tenant} is {_shown(record)['status']}")


@app.command("rotate")
def rotate(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The old key's id.", show_default=False)],
    overlap: Annotated[
        str, typer.Option("--overlap", metavar="SPAN", help="How long the old key stays good.")
    ] = "24h",
    expires: Expires = None,
    keys: KeysFlag = None,
    redis: RedisFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Make a key in place of another, which stays good for a while."""
    from orchard_env.service.tenancy.issuing import rotate_key

    overlap_s, lasts_s = seconds(overlap), None if expires is None else seconds(expires)

    async def work(book: Book) -> Issued:
        return await rotate_key(book, key_id, overlap_s=overlap_s, lasts_s=lasts_s)

    issued = in_book(work, keys=keys, redis=redis)
    _show_new(issued, as_json)
    if not as_json:
        typer.echo(f"the key {key_id} stays good for {overlap} more", err=True)


@app.command("revoke")
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The key's id.", show_default=False)],
    keys: KeysFlag = None,
    redis: RedisFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Refuse a key from now on, in every replica. There is no way back.

    Exits with 1 when a live replica has not confirmed it within 10 seconds.
    """
    from orchard_env.service.tenancy.issuing import revoke_key

    async def work(book: Book) -> tuple[KeyRecord, Spread | None]:
        return await revoke_key(book, key_id), await book.spread(_SPREAD_S)

    record, spread = in_book(work, keys=keys, redis=redis)
    known = spread is None or spread.replicas == spread.of
    if as_json:
        _print_json(
            {**_shown(record), "replicas": spread and spread.of, "confirmed": spread and spread.replicas}
        )
    else:
        where = "by every replica with its next request" if spread is None else _spread_in_words(spread)
        typer.echo(f"the key {record.id} of {record.tenant} is revoked: refused {where}")
    if not known:
        raise typer.Exit(1)


@app.command("list")
def list_(
    tenant: Annotated[
        str | None, typer.Option("--tenant", metavar="TENANT", help="Only this tenant's.")
    ] = None,
    keys: KeysFlag = None,
    redis: RedisFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """List every key, revoked and expired ones too; never the keys themselves."""

    async def work(book: Book) -> list[KeyRecord]:
        return [key for key in (await book.read()).keys if tenant in (None, key.tenant)]

    found = sorted(in_book(work, keys=keys, redis=redis), key=lambda key: (key.tenant, key.created))
    if as_json:
        _print_json([_shown(key) for key in found])
        return
    head = ("ID", "TENANT", "SCOPES", "STATUS", "CREATED", "EXPIRES", "NOTE")
    rows = [tuple(str(_shown(key)[name.lower()] or "") for name in head) for key in found]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _key_in(file: Path) -> str:
    from orchard_core import ConfigError

    if str(file) == "-":
        return sys.stdin.readline().strip()
    try:
        return file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"the key in {file} cannot be read: {error}", hint="give a file with a key alone"
        ) from error


def _scopes(words: list[str]) -> tuple[Scope, ...]:
    from orchard_env.service.seams import Scope
    from orchard_env.service.tenancy.issuing import RUN

    odd = next((word for word in words if word not in _WORDS), None)
    if odd is not None:
        raise typer.BadParameter(f"{odd!r} is no scope: {', '.join(_WORDS)}", param_hint="--scope")
    found = {Scope.READ} | (set(RUN) if {"run", "admin"} & set(words) else set())
    return tuple(sorted(found | ({Scope.ADMIN} if "admin" in words else set())))


def _scope_words(key: KeyRecord) -> str:
    from orchard_env.service.seams import Scope

    return "admin" if Scope.ADMIN in key.scopes else "run" if Scope.CREATE in key.scopes else "read"


def _shown(key: KeyRecord) -> dict[str, Any]:
    from orchard_env.service.tenancy.issuing import status

    return {
        "id": key.id,
        "tenant": key.tenant,
        "scopes": _scope_words(key),
        "status": status(key, time.time()),
        "created": _day(key.created),
        "expires": _day(key.expires),
        "replaced_by": key.replaced_by,
        "note": "".join(char if char.isprintable() else "?" for char in key.note),
    }


def _day(at: float | None) -> str | None:
    return None if at is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def _show_new(issued: Issued, as_json: bool) -> None:
    """The key alone on standard output, so that `KEY=$(orchard env keys create ...)` has it."""
    if as_json:
        _print_json({**_shown(issued.record), "key": issued.text})
        return
    typer.echo(issued.text)
    if sys.stderr.isatty():
        typer.echo("It is not shown again. Give it to its owner on a safe way.", err=True)


def _spread_in_words(spread: Spread) -> str:
    if spread.replicas == spread.of:
        return f"by {spread.of} of {spread.of} live replicas"
    return (
        f"by {spread.replicas} of {spread.of} live replicas so far; the others follow when Redis reaches them"
    )


def _print_json(value: object) -> None:
    import json

    typer.echo(json.dumps(value, indent=2))
