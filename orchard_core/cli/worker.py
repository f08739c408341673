"""`orchard worker`: one worker of a run that `orchard run --workers` coordinates."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer


def worker(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run directory.")],
    index: Annotated[int, typer.Option(help="Which worker this is, from 0.")],
    count: Annotated[int, typer.Option(help="How many there are.")],
    with_parent: Annotated[
        bool, typer.Option("--with-parent", help="Stop when standard input is closed.")
    ] = False,
) -> None:
    """Take a share of a run that another process coordinates."""
    from pathlib import Path

    from orchard_core.cli.interrupt import run_async
    from orchard_core.cli.launch import take_share
    from orchard_core.cli.lifeline import stopping_with_parent
    from orchard_core.cli.recipe import make_recipe
    from orchard_core.cli.resolve import stored
    from orchard_core.rollout.share import Share
    from orchard_core.rollout.stop import Stop

    async def work(stop: Stop) -> None:
        async with stopping_with_parent(stop, wanted=with_parent):
            await take_share(recipe, Path(run), share, stop)

    with _hopeless_told():
        share = Share(index=index, count=count)
        recipe = make_recipe(stored(Path(run)), where=run)
        _, code = run_async(work)
    raise typer.Exit(code)


@contextmanager
def _hopeless_told() -> Iterator[None]:
    """Raises typer.Exit(HOPELESS) for what another start would not mend."""
    from orchard_core import errors
    from orchard_core.cli.output import err
    from orchard_core.rollout.workers.contract import HOPELESS

    lasting = (
        errors.ConfigError, errors.PluginError, errors.TaskError, errors.SandboxUnsupported,
        errors.RunNotFound, errors.RunFutile,
    )  # fmt: skip
    try:
        yield
    except lasting as error:
        err(f"{error.message}\n{error.hint}".rstrip())
        raise typer.Exit(HOPELESS) from None
