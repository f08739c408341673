"""Where keys and tenants are kept: the flags that name the place, and the place itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from orchard_env.service.tenancy.books import Book

_Result = TypeVar("_Result")

KeysFlag = Annotated[
    Path | None,
    typer.Option(
        "--keys", metavar="FILE", envvar="ORCHARD_ENV_KEYS", help="The key file; made when missing."
    ),
]
RedisFlag = Annotated[
    str | None,
    typer.Option(
        "--redis",
        metavar="URL",
        help="The Redis that replicas share, instead of a file. The password: ORCHARD_ENV_REDIS_PASSWORD.",
    ),
]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def in_book(work: Callable[[Book], Awaitable[_Result]], *, keys: Path | None, redis: str | None) -> _Result:
    """Do something with the place that the flags, or the environment, name. Raises ConfigError."""
    import asyncio

    return asyncio.run(_in_book(work, keys, redis))


async def _in_book(
    work: Callable[[Book], Awaitable[_Result]], keys: Path | None, redis: str | None
) -> _Result:
    from orchard_core import ConfigError
    from orchard_env.service.state.redis.settings import RedisSettings
    from orchard_env.service.tenancy.books import FileBook, SharedBook

    if keys is not None:
        if redis is not None:
            raise ConfigError("--keys and --redis name two places", hint="give one of them")
        return await work(FileBook(keys))
    settings = RedisSettings.of(redis)
    if settings is None:
        raise ConfigError(
            "nothing says where keys are kept",
            hint="give --keys FILE or --redis URL, or set ORCHARD_ENV_KEYS or ORCHARD_ENV_REDIS_URL",
        )
    from orchard_env.service.state.redis.state import RedisState

    state = RedisState(settings)
    try:
        return await work(SharedBook(state))
    finally:
        await state.close()
