"""`orchard containers`: what stands, images fetched ahead, and what dead drivers left."""

from __future__ import annotations

import json
import time
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from types import TracebackType

    from orchard_sandbox_container.config import ContainerConfig
    from orchard_sandbox_container.progress import ImageProgress
    from orchard_sandbox_container.reaper import Reaped

app = typer.Typer(
    name="containers", help="Sandboxes in Docker or Podman.", no_args_is_help=True, rich_markup_mode=None
)

EngineOption = Annotated[
    str | None,
    typer.Option("--engine", help="The engine's address; else the one that is found.", metavar="URL"),
]
StateOption = Annotated[
    str | None,
    typer.Option("--state-dir", help="The provider's state_dir, if it was given one.", metavar="DIR"),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_standing(
    engine: EngineOption = None, state_dir: StateOption = None, as_json: JsonOption = False
) -> None:
    """List the sandboxes that stand, whoever made them."""
    from orchard_sandbox_container.provider import ContainerProvider

    async def look() -> list[dict[str, object]]:
        provider = ContainerProvider(_config(engine, state_dir))
        found = await provider.standing()
        await provider.release()
        now = time.time()
        ages = [now - one.created if one.age_s is None else one.age_s for one in found]
        return [
            {
                "id": one.id,
                "image": str(one.spec.image),
                "age_s": round(age_s, 1),
                "left_s": round(one.spec.ttl_s - age_s, 1),
                "labels": dict(one.spec.labels),
            }
            for one, age_s in zip(found, ages, strict=True)
        ]

    import asyncio

    rows = asyncio.run(look())
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        typer.echo(_plain(f"{row['id']}  {row['image']}  {row['age_s']} s old, {row['left_s']} s left"))
    typer.echo(f"{len(rows)} sandboxes stand", err=True)


@app.command("reap")
def reap_leftovers(
    engine: EngineOption = None, state_dir: StateOption = None, as_json: JsonOption = False
) -> None:
    """Remove what killed drivers left: only what is provably ours and dead."""

    async def clean() -> Reaped:
        from orchard_sandbox_container.address import candidates
        from orchard_sandbox_container.box import open_root
        from orchard_sandbox_container.engine import find_engine
        from orchard_sandbox_container.reaper import reap

        found, _ = await find_engine(candidates(engine))
        try:
            return await reap(found, open_root(state_dir))
        finally:
            await found.close()

    import asyncio

    done = asyncio.run(clean())
    if as_json:
        typer.echo(
            json.dumps(
                {
                    "sandboxes": list(done.sandboxes),
                    "snapshots": done.snapshots,
                    "directories": done.boxes,
                    "left": list(done.left),
                }
            )
        )
    else:
        typer.echo(
            f"removed {len(done.sandboxes)} sandboxes, {done.snapshots} snapshots, {done.boxes} directories"
        )
    if done.left:
        typer.echo(_plain(f"could not be removed: {', '.join(done.left)}"), err=True)
        raise typer.Exit(1)


@app.command("pull")
def pull_image(
    image: Annotated[str, typer.Argument(help="oci:REFERENCE or build:DIRECTORY.", metavar="IMAGE")],
    engine: EngineOption = None,
    platform: Annotated[str | None, typer.Option(help="Such as linux/amd64.", metavar="OS/ARCH")] = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch or build an image now, so that no rollout waits for it."""
    from orchard_core import ImageRef
    from orchard_sandbox_container.address import candidates
    from orchard_sandbox_container.config import ContainerConfig
    from orchard_sandbox_container.engine import find_engine
    from orchard_sandbox_container.images import EngineImage, Images

    wanted = ImageRef.parse(
        image if ":" in image and image.split(":")[0] in ("oci", "build") else f"oci:{image}"
    )
    config = ContainerConfig(engine=engine, platform=platform, pull="always")

    async def fetch(shown: _Bar) -> EngineImage:
        found, _ = await find_engine(candidates(config.engine))
        try:
            return await Images(found, config, on_progress=shown.show).get(wanted)
        finally:
            await found.close()

    with _Bar(str(wanted)) as shown:
        import asyncio

        got = asyncio.run(fetch(shown))
    typer.echo(json.dumps({"image": str(wanted), "id": got.id}) if as_json else f"{wanted} is {got.id}")


class _Bar(AbstractContextManager["_Bar"]):
    """A bar on stderr, and nothing where that is no terminal."""

    def __init__(self, image: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

        console = Console(stderr=True)
        self._bars = Progress(
            TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(),
            TextColumn("{task.fields[words]}", markup=False), console=console,
            disable=not console.is_terminal,
        )  # fmt: skip
        self._task = self._bars.add_task(_plain(image), total=None, words="")

    def __enter__(self) -> _Bar:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def show(self, progress: ImageProgress) -> None:
        """As it goes on."""
        self._bars.update(
            self._task,
            completed=progress.done_bytes,
            total=progress.total_bytes or None,
            words=_plain(progress.words)[:60],
        )


def _config(engine: str | None, state_dir: str | None) -> ContainerConfig:
    from orchard_sandbox_container.config import ContainerConfig

    return ContainerConfig(engine=engine, state_dir=state_dir)


def _plain(text: str) -> str:
    """Without what a terminal would obey: labels and an engine's words are others'."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
