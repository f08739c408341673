"""From a recipe to a finished run."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from orchard_core.cli.display.watcher import Watcher, make_watcher
from orchard_core.cli.exits import Exit
from orchard_core.cli.interrupt import run_async
from orchard_core.cli.output import err, out, print_json
from orchard_core.cli.recipe import Recipe
from orchard_core.cli.resolve import new_directory, written
from orchard_core.cli.summary import RunSummary
from orchard_core.errors import ConfigError
from orchard_core.gateway.contract import Model
from orchard_core.harness.contract import Harness
from orchard_core.plugins import lookup
from orchard_core.rollout.events import Observer
from orchard_core.rollout.front import run_rollouts
from orchard_core.rollout.opening import check_images, open_parts, select_tasks
from orchard_core.rollout.sampler import FixedSampler
from orchard_core.rollout.selecting import selection
from orchard_core.rollout.settings import RolloutSettings
from orchard_core.rollout.share import Share
from orchard_core.rollout.starting import RunRequest, started
from orchard_core.rollout.stop import Stop
from orchard_core.rollout.store.run import CONFIG_NAME
from orchard_core.rollout.workers.coordinate import coordinate
from orchard_core.rollout.workers.earlier import until_free
from orchard_core.rollout.workers.finding import load_workforce
from orchard_core.sandbox.contract import SandboxProvider
from orchard_core.tasks.contract import TaskSet


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """What to run: a name where the user gave no options, so that it is stored as it was written."""

    taskset: TaskSet | str
    harness: Harness | str
    model: Model | str
    sandbox: SandboxProvider | str


@asynccontextmanager
async def _parts(recipe: Recipe) -> AsyncIterator[_Named]:
    async with AsyncExitStack() as stack:
        model: Model | str = recipe.model
        sandbox: SandboxProvider | str = recipe.sandbox
        if recipe.model_options:
            model = lookup.load_model(recipe.model, **recipe.model_options)
            stack.push_async_callback(model.close)
        if recipe.sandbox_options:
            sandbox = lookup.load_provider(recipe.sandbox, **recipe.sandbox_options)
            stack.push_async_callback(sandbox.close)
        yield _Named(
            taskset=lookup.load_taskset(recipe.taskset, **recipe.taskset_options),
            harness=lookup.load_harness(recipe.harness, **recipe.harness_options),
            model=model,
            sandbox=sandbox,
        )


def _settings(recipe: Recipe) -> RolloutSettings:
    return recipe.settings.model_copy(update={"allow_host_fallback": recipe.allow_host_fallback})


async def execute(
    recipe: Recipe, directory: str, watcher: Watcher, stop: Stop, *, resume: bool = False
) -> None:
    """Run it to its end, or until it is asked to stop."""
    if _is_shared(recipe):
        await _shared(recipe, directory, watcher, stop, resume=resume)
        return
    async with _parts(recipe) as named:
        async for _ in run_rollouts(
            named.taskset,
            harness=named.harness,
            model=named.model,
            sandbox=named.sandbox,
            out=directory,
            resume=resume,
            attempts=recipe.attempts,
            concurrency=recipe.concurrency,
            limits=recipe.limits,
            seed=recipe.seed,
            select=selection(recipe.tasks, recipe.limit),
            settings=_settings(recipe),
            retry=recipe.retry,
            observers=[("display", watcher)],
            stop=stop,
            options={"recipe": written(recipe)},
        ):
            pass


def _is_shared(recipe: Recipe) -> bool:
    return recipe.workers > 1 or recipe.on != Recipe.model_fields["on"].default


async def _shared(recipe: Recipe, directory: str, watcher: Watcher, stop: Stop, *, resume: bool) -> None:
    """By several workers."""
    workforce = load_workforce(recipe.on, **recipe.worker_options)
    async with AsyncExitStack() as stack:
        named = await stack.enter_async_context(_parts(recipe))
        parts = await open_parts(
            stack, named.taskset, harness=named.harness, model=named.model, sandbox=named.sandbox
        )
        parts = replace(parts, limits=recipe.limits, settings=_settings(recipe))
        request = _request(recipe, directory, stop, resume=resume, observers=[("display", watcher)])
        await coordinate(
            stack, parts, request, workforce=workforce, workers=recipe.workers,
            told=lambda news: err(f"worker {news.index}: {news.text}"),
        )  # fmt: skip


def _request(
    recipe: Recipe, directory: str, stop: Stop, *, resume: bool, observers: Sequence[tuple[str, Observer]]
) -> RunRequest:
    return RunRequest(
        out=Path(directory), resume=resume, attempts=recipe.attempts, concurrency=recipe.concurrency,
        seed=recipe.seed, select=selection(recipe.tasks, recipe.limit), retry=recipe.retry,
        sampler=FixedSampler(size=recipe.attempts), observers=observers, stop=stop,
        options={"recipe": written(recipe)},
    )  # fmt: skip


async def take_share(recipe: Recipe, run: Path, share: Share, stop: Stop) -> None:
    """What one worker does: its share of a run that another process coordinates."""
    await until_free(share.folder(run))  # one that was killed may be just ending
    async with AsyncExitStack() as stack:
        named = await stack.enter_async_context(_parts(recipe))
        parts = await open_parts(
            stack, named.taskset, harness=named.harness, model=named.model, sandbox=named.sandbox
        )
        parts = replace(parts, limits=recipe.limits, settings=_settings(recipe))
        request = _request(recipe, str(run), stop, resume=True, observers=[])
        fair = -(-recipe.concurrency // share.count)
        async for _ in await started(stack, parts, replace(request, share=share, concurrency=fair)):
            pass


def launch(recipe: Recipe, *, resume: bool, plain: bool, as_json: bool) -> None:
    """Run a recipe, show it go on, print what came out. Raises typer.Exit unless all have a score."""
    directory = recipe.out or new_directory(recipe)
    watcher = make_watcher(title(recipe), plain=plain)
    with watcher.showing(), _told_if_unwritable(Path(directory).absolute()):
        _, code = run_async(lambda stop: execute(recipe, directory, watcher, stop, resume=resume))
    summary = RunSummary.of(Path(directory))
    if as_json:
        print_json(summary.model_dump(mode="json"))
    else:
        for line in summary.lines():
            out(line)
    if summary.missing:
        err(f"go on with: orchard run --resume --out {directory}", bold=True)
    if code is not Exit.OK:
        raise typer.Exit(code)
    if summary.scored < summary.planned:
        raise typer.Exit(Exit.UNSOUND)


@contextmanager
def _told_if_unwritable(root: Path) -> Iterator[None]:
    """Raises ConfigError where the run directory could not be made."""
    try:
        yield
    except OSError as error:
        named = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else None
        if named is None or not (root.is_relative_to(named) or named.is_relative_to(root)):
            raise
        if (root / CONFIG_NAME).exists():  # it was made; what failed is the disk
            raise
        raise ConfigError(
            f"the run directory {root} cannot be made: {error.strerror}", hint="choose another --out"
        ) from error


def title(recipe: Recipe) -> str:
    """A line that says what is run."""
    return " · ".join((recipe.taskset, recipe.harness, recipe.model, recipe.sandbox))


def dry(recipe: Recipe, *, as_json: bool) -> None:
    """Load every part, check that the provider takes every task's image, and say what would run."""
    from orchard_core.cli.interrupt import cancelling

    tasks, code = run_async(cancelling(lambda: _dry(recipe)))
    if tasks is None:
        raise typer.Exit(code)
    rollouts = len(tasks) * recipe.attempts
    if as_json:
        print_json({"recipe": recipe.model_dump(mode="json"), "tasks": [*tasks], "rollouts": rollouts})
        return
    out(f"would run  {title(recipe)}")
    out(f"tasks      {len(tasks)}: {', '.join(tasks[:4])}{', ...' if len(tasks) > 4 else ''}")
    out(f"rollouts   {rollouts}, {recipe.attempts} at each task, {recipe.concurrency} at once")
    out(f"into       {recipe.out or 'a new directory under runs/'}")


async def _dry(recipe: Recipe) -> list[str]:
    if _is_shared(recipe):
        load_workforce(recipe.on, **recipe.worker_options)
    async with AsyncExitStack() as stack:
        named = await stack.enter_async_context(_parts(recipe))
        parts = await open_parts(
            stack, named.taskset, harness=named.harness, model=named.model, sandbox=named.sandbox
        )
        tasks = select_tasks(parts.taskset, selection(recipe.tasks, recipe.limit))
        await check_images(tasks.values(), replace(parts, settings=_settings(recipe)))
        return list(tasks)
