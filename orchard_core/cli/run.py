"""`orchard run`: run a harness and a model on a task set."""

from __future__ import annotations

import typer

from orchard_core.cli import run_flags as flag


def run(  # noqa: PLR0913, PLR0917 - Typer makes one option of each parameter
    source: flag.Source = "",
    harness: flag.Harness = None,
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
    seed: flag.Seed = None,
    allow_host_fallback: flag.HostFallback = None,
    out: flag.Out = None,
    resume: flag.Resume = False,
    max_turns: flag.MaxTurns = None,
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
    options = {
        "taskset": taskset_option,
        "harness": harness_option,
        "model": model_option,
        "sandbox": sandbox_option,
    }
    limits = {"turns": max_turns, "tokens": max_tokens, "cost_usd": max_cost, "wall_clock_s": timeout}
    flags = flag.Flags(
        source=source, harness=harness, model=model, base_url=base_url, sandbox=sandbox, task=task,
        limit=limit, options=options, attempts=attempts, concurrency=concurrency, seed=seed, out=out,
        limits=limits, allow_host_fallback=allow_host_fallback,
    )  # fmt: skip
    from orchard_core.cli.launch import dry, launch
    from orchard_core.cli.recipe import to_yaml
    from orchard_core.cli.resolve import resolved

    recipe = resolved(flags, resume=resume)
    if print_config:
        typer.echo(to_yaml(recipe), nl=False)
    elif dry_run:
        dry(recipe, as_json=as_json)
    else:
        launch(recipe, resume=resume, plain=plain, as_json=as_json)
