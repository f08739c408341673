"""A mix from start to end: read each source once, plan, write."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchard_core.datasets.mix.directory import MixDirectory, mix_directory
from orchard_core.datasets.mix.outcome import MixOutcome, digest_of, made, outcome, resolved
from orchard_core.datasets.mix.plan import Plan, make_plan
from orchard_core.datasets.mix.pool import Pool, pool
from orchard_core.datasets.mix.reading import kind_of
from orchard_core.datasets.mix.recipe import MixRecipe, named_sources
from orchard_core.datasets.mix.scan import Scan, scan
from orchard_core.datasets.mix.shards import ShardJob, write_shard
from orchard_core.datasets.store.manifest import Manifest, read_manifest
from orchard_core.datasets.store.taken import must_lie_apart
from orchard_core.errors import MixRefused

if TYPE_CHECKING:
    from orchard_core.datasets.store.writer import DatasetWriter

SMALL_BYTES = 8 << 20
"""Sources of less in all are read by this process: others cost more to start than they save."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Going:
    """How far a mix is."""

    stage: str
    """`read`, `plan` or `write`."""
    rows: int = 0
    """Rows read, or written, so far."""
    of: int = 0
    """Rows to write; 0: unknown."""
    share: float = 0.0
    """Of this stage's work, as far as can be told."""


Watch = Callable[[Going], None]


def mix(
    recipe: MixRecipe,
    out: str | Path,
    *,
    recipe_text: str = "",
    workers: int = 0,
    watch: Watch = lambda _: None,
) -> Manifest:
    """Make the dataset; gives its manifest, which keeps `recipe_text`: the recipe as its author wrote it.

    The same recipe on the same sources gives the same files in any process, with any number of workers (0: as
    many as there are cores, at most 4). A mix that was killed goes on when it is called again with the same
    recipe. Raises MixRefused when no row is left or one is not to be, DatasetExists, DatasetLocked,
    DatasetNotFound, DatasetCorrupt, DatasetError, ConfigError, FormatUnknown, StoreError.
    """
    recipe = with_names(recipe)
    for source in recipe.sources:
        kind_of(source)
        must_lie_apart(Path(out), Path(source.path))
    with (
        pool(_workers(workers, recipe)) as held,
        mix_directory(Path(out), resolved(recipe)) as directory,
    ):
        if not directory.done:
            _make(recipe, directory, recipe_text, held, watch)
        manifest = read_manifest(directory.root)
        directory.clear()
    return manifest


def dry_mix(recipe: MixRecipe, *, workers: int = 0, watch: Watch = lambda _: None) -> MixOutcome:
    """What a mix would keep and drop; nothing is written but a temporary index."""
    recipe = with_names(recipe)
    with tempfile.TemporaryDirectory(prefix="orchard-mix-") as work:
        jobs = _jobs(recipe, Path(work), keep=False)
        with pool(_workers(workers, recipe)) as held:
            _read(jobs, held, watch)
        return outcome(recipe, jobs, make_plan(Path(work), recipe, jobs))


def with_names(recipe: MixRecipe) -> MixRecipe:
    """The recipe with a name for each source."""
    return recipe.model_copy(update={"sources": tuple(named_sources(recipe))})


def _make(recipe: MixRecipe, directory: MixDirectory, recipe_text: str, held: Pool, watch: Watch) -> None:
    from orchard_core.datasets.store.writer import DatasetWriter

    jobs = _jobs(recipe, directory.work, keep=True)
    _read(jobs, held, watch)
    watch(Going(stage="plan"))
    plan = make_plan(directory.work, recipe, jobs)
    told = outcome(recipe, jobs, plan)
    if not told.rows:
        raise MixRefused(
            f"nothing is left of {sum(source.read for source in told.sources)} rows: {_dropped(told)}",
            hint="loosen the filters or the shares; --dry-run shows examples",
        )
    with DatasetWriter(directory.root, plan=digest_of(recipe), resume=True) as writer:
        _write(writer, directory.work, recipe, plan, held, watch)
        writer.finish(made(recipe, recipe_text, told))


def _write(
    writer: DatasetWriter, work: Path, recipe: MixRecipe, plan: Plan, held: Pool, watch: Watch
) -> None:
    """The shards that are not there yet."""
    shards, there = plan.shards(), {(shard.split, shard.number) for shard in writer.shards}
    todo = [
        ShardJob(shard=shard, path=writer.shard_path(shard.split, shard.place), work=work, recipe=recipe)
        for shard in shards
        if (shard.split, shard.place) not in there
    ]
    total = sum(shard.rows for shard in shards)
    before = total - sum(job.shard.rows for job in todo)

    def look() -> None:
        rows = before + held.counted()[0]
        watch(Going(stage="write", rows=rows, of=total, share=rows / total))

    for shard in held.map(write_shard, todo, look):
        writer.adopt(shard)


def _dropped(told: MixOutcome) -> str:
    counts: dict[str, int] = {}
    for source in told.sources:
        for reason, count in source.dropped.items():
            counts[reason] = counts.get(reason, 0) + count
    return ", ".join(f"{reason} {count}" for reason, count in counts.items()) or "the sources are empty"


def _jobs(recipe: MixRecipe, work: Path, *, keep: bool) -> list[Scan]:
    return [
        Scan(number=number, source=source, recipe=recipe, work=work, keep=keep)
        for number, source in enumerate(recipe.sources)
    ]


def _read(jobs: Sequence[Scan], held: Pool, watch: Watch) -> None:
    size = max(1, sum(_size(job.path) for job in jobs))

    def look() -> None:
        rows, read = held.counted()
        watch(Going(stage="read", rows=rows, share=min(1.0, read / size)))

    for _ in held.map(scan, jobs, look):
        pass


def _workers(asked: int, recipe: MixRecipe) -> int:
    """How many processes."""
    if asked:
        return asked
    if sum(_size(Path(source.path)) for source in recipe.sources) < SMALL_BYTES:
        return 1
    return min(4, len(os.sched_getaffinity(0)))


def _size(path: Path) -> int:
    """Bytes of a file or of the files below a directory; 0 for what cannot be looked at."""
    total = 0
    with suppress(OSError):
        if not path.is_dir():
            return path.stat().st_size
        for folder, _, names in os.walk(path):
            total += sum(Path(folder, name).stat().st_size for name in names)
    return total
