"""`orchard run`: run a harness and a model on a task set."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from orchard_core.cli import run_flags as flag


def run(  # noqa: PLR0913, PLR0917 - Typer makes one option of each parameter
    source: flag.Source = "",
    harness: flag.Harness = None,
    harness_config: flag.HarnessConfig = None,
    model: flag.Model = None,
    base_url: flag.BaseUrl = None,
    sandbox: flag.Sandbox = None,
    task: flag.Task = None,
    limit: flag.Limit = None,
    taskset_option: flag.TasksetOption = None,
    harness_option: flag.HarnessOption = None,
    model_option: flag.ModelOption = None,
    sandbox_option: flag.SandboxOption = None,
    attempts: flag.Attempts = None,
    concurrency: flag.Concurrency = None,
    workers: flag.Workers = None,
    on: flag.On = None,
    worker_option: flag.WorkerOption = None,
    seed: flag.Seed = None,
    allow_host_fallback: flag.HostFallback = None,
    out: flag.Out = None,
    resume: flag.Resume = False,
    max_turns: flag.MaxTurns = None,
    max_calls: flag.MaxCalls = None,
    max_tokens: flag.MaxTokens = None,
    max_cost: flag.MaxCost = None,
    timeout: flag.Timeout = None,
    print_config: flag.PrintConfig = False,
    dry_run: flag.DryRun = False,
    plain: flag.Plain = False,
    as_json: flag.AsJson = False,
) -> None:
    """Run a harness and a model on a task set.

    Every model call is recorded, every rollout scored and kept. Exits with 1 when a rollout finished
    without a score.
    """
    flags = flag.Flags(
        source=source, harness=harness, harness_config=harness_config, model=model, base_url=base_url,
        sandbox=sandbox, task=task, limit=limit, attempts=attempts, concurrency=concurrency, seed=seed,
        out=out, allow_host_fallback=allow_host_fallback, workers=workers, on=on,
        options={"taskset": taskset_option, "harness": harness_option, "model": model_option,
                 "sandbox": sandbox_option, "worker": worker_option},
        limits={"turns": max_turns, "calls": max_calls, "tokens": max_tokens, "cost_usd": max_cost,
                "wall_clock_s": timeout},
    )  # fmt: skip
    mode = _Mode(print_config=print_config, dry_run=dry_run, resume=resume, plain=plain, as_json=as_json)
    _act(flags, mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mode:
    """What to do with the recipe, and how to show it."""

    print_config: bool
    """Print it only."""
    dry_run: bool
    """Check it only."""
    resume: bool
    """Take a run up again."""
    plain: bool
    """Lines instead of a display."""
    as_json: bool
    """JSON instead of text."""


def _act(flags: flag.Flags, mode: _Mode) -> None:
    from orchard_core.cli.launch import dry, launch
    from orchard_core.cli.recipe import to_yaml
    from orchard_core.cli.resolve import resolved

    recipe = resolved(flags, resume=mode.resume)
    if mode.print_config:
        typer.echo(to_yaml(recipe), nl=False)
    elif mode.dry_run:
        dry(recipe, as_json=mode.as_json)
    else:
        launch(recipe, resume=mode.resume, plain=mode.plain, as_json=mode.as_json)
