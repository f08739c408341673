"""`orchard matrix`: run harnesses x models x task sets."""

from __future__ import annotations

from orchard_core.cli import matrix_flags as own
from orchard_core.cli import run_flags as flag


def matrix(  # noqa: PLR0913, PLR0917 - Typer makes one option of each parameter
    source: own.Source = "", harness: own.Harness = None, model: own.Model = None,
    taskset: own.Taskset = None, base_url: flag.BaseUrl = None, sandbox: flag.Sandbox = None,
    harness_config: own.HarnessConfig = None, task: flag.Task = None, limit: flag.Limit = None,
    harness_option: own.HarnessOption = None,
    model_option: own.ModelOption = None, taskset_option: own.TasksetOption = None,
    sandbox_option: flag.SandboxOption = None, attempts: flag.Attempts = None,
    concurrency: flag.Concurrency = None, model_concurrency: own.ModelConcurrency = None,
    harness_concurrency: own.HarnessConcurrency = None, seed: flag.Seed = None,
    allow_host_fallback: flag.HostFallback = None, retry_failed: own.RetryFailed = None,
    strict: own.Strict = None, out: own.Out = None, max_turns: flag.MaxTurns = None,
    max_calls: flag.MaxCalls = None, max_tokens: flag.MaxTokens = None, max_cost: flag.MaxCost = None,
    timeout: flag.Timeout = None, max_cost_total: own.MaxCostTotal = None,
    max_tokens_total: own.MaxTokensTotal = None, max_time: own.MaxTime = None,
    print_config: flag.PrintConfig = False, dry_run: flag.DryRun = False, plain: flag.Plain = False,
    as_json: flag.AsJson = False,
) -> None:  # fmt: skip
    """Run every harness with every model on every task set.

    Each combination is a cell: a run directory of its own, which `orchard report`, `show` and `run --resume`
    take. Running again on the same --out goes on, and adds what is new. Exits with 1 when a cell could not
    be run, a bound was reached, or a rollout has no score.
    """
    from orchard_core.cli.matrix_launch import act
    from orchard_core.cli.matrix_resolve import resolved

    flags = own.MatrixFlags(
        harnesses=own.PartFlags(names=harness, options=harness_option, flag="--harness",
                                config_file=harness_config),
        models=own.PartFlags(names=model, options=model_option, flag="--model", base_url=base_url),
        tasksets=own.PartFlags(names=taskset, options=taskset_option, flag="--taskset"),
        sandbox=sandbox, sandbox_option=sandbox_option, retry_failed=retry_failed,
        model_concurrency=model_concurrency, harness_concurrency=harness_concurrency,
        limits={"turns": max_turns, "calls": max_calls, "tokens": max_tokens, "cost_usd": max_cost,
                "wall_clock_s": timeout},
        plain={
            "tasks": task, "limit": limit, "attempts": attempts, "seed": seed, "out": out, "strict": strict,
            "concurrency": concurrency, "allow_host_fallback": allow_host_fallback, "max_time": max_time,
            "max_cost_total": max_cost_total, "max_tokens_total": max_tokens_total,
        },
    )  # fmt: skip
    act(
        resolved(source, flags.fields()),
        print_config=print_config,
        dry_run=dry_run,
        plain=plain,
        as_json=as_json,
    )
