"""`orchard env tenants`: weights and quotas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchard_env.cli.place import JsonFlag, KeysFlag, RedisFlag, in_book

if TYPE_CHECKING:
    from orchard_env.service.tenancy.books import Book
    from orchard_env.service.tenancy.records import Access, TenantRecord

app = typer.Typer(help="Set and list tenants.", no_args_is_help=True, rich_markup_mode=None)

_LIMITS = (
    "sandboxes", "cpu", "memory_mb", "snapshots", "snapshots_mb", "creates_per_min", "execs_per_s",
)  # fmt: skip


@app.command("set")
def set_(
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="Its name.", show_default=False)],
    weight: Annotated[
        float | None,
        typer.Option("--weight", min=0.01, max=100, help="Its share of the turns when the service is full."),
    ] = None,
    sandboxes: Annotated[int | None, typer.Option("--sandboxes", min=0, help="Sandboxes at once.")] = None,
    cpu: Annotated[float | None, typer.Option("--cpu", min=0, help="CPU cores of them together.")] = None,
    memory_mb: Annotated[
        int | None, typer.Option("--memory-mb", min=0, help="Memory of them together, MiB.")
    ] = None,
    snapshots: Annotated[int | None, typer.Option("--snapshots", min=0, help="Snapshots that stand.")] = None,
    snapshots_mb: Annotated[
        int | None, typer.Option("--snapshots-mb", min=0, help="Disk of them together, MiB.")
    ] = None,
    creates_per_min: Annotated[
        float | None, typer.Option("--creates-per-min", min=0.01, help="Sandboxes asked for a minute.")
    ] = None,
    execs_per_s: Annotated[
        float | None, typer.Option("--execs-per-s", min=0.01, help="Commands begun a second.")
    ] = None,
    keys: KeysFlag = None,
    redis: RedisFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Set what a tenant may have. What is not named stays; a tenant that was never set has the defaults."""
    from orchard_env.service.tenancy.issuing import set_tenant

    given = (sandboxes, cpu, memory_mb, snapshots, snapshots_mb, creates_per_min, execs_per_s)
    limits = {name: limit for name, limit in zip(_LIMITS, given, strict=True) if limit is not None}

    async def work(book: Book) -> TenantRecord:
        return await set_tenant(book, tenant, weight=weight, limits=limits)

    record = in_book(work, keys=keys, redis=redis)
    if as_json:
        _print_json(_shown(record))
    else:
        typer.echo(_line(record))


@app.command("list")
def list_(keys: KeysFlag = None, redis: RedisFlag = None, as_json: JsonFlag = False) -> None:
    """List every tenant that was set."""

    async def work(book: Book) -> Access:
        return await book.read()

    found = sorted(in_book(work, keys=keys, redis=redis).tenants, key=lambda tenant: tenant.name)
    if as_json:
        _print_json([_shown(tenant) for tenant in found])
        return
    for tenant in found:
        typer.echo(_line(tenant))


def _shown(tenant: TenantRecord) -> dict[str, Any]:
    quota = tenant.quota.model_dump() if tenant.quota else None
    return {"name": tenant.name, "weight": tenant.weight, "quota": quota}


def _line(tenant: TenantRecord) -> str:
    limits = tenant.quota.model_dump(exclude_none=True) if tenant.quota else {}
    words = ", ".join(f"{name} {limit:g}" for name, limit in limits.items()) or "the default quota"
    return f"{tenant.name}: weight {tenant.weight:g}, {words}"


def _print_json(value: object) -> None:
    import json

    typer.echo(json.dumps(value, indent=2))
