"""`orchard data credit`: a value curve, its rises and a mask for every unresolved rollout."""

from __future__ import annotations

from orchard_core.cli.data import credit_flags as flag


def credit(  # noqa: PLR0913, PLR0917 - Typer makes one option of each parameter
    path: flag.Source = None,
    estimator: flag.Estimator = "judge",
    judge: flag.Judge = None,
    base_url: flag.BaseUrl = None,
    judge_option: flag.JudgeOption = None,
    param: flag.Param = None,
    context_tokens: flag.ContextTokens = 100_000,
    template: flag.Template = 1,
    show_prompt: flag.ShowPrompt = False,
    option: flag.Option = None,
    max_rollouts: flag.MaxRollouts = None,
    epsilon: flag.Epsilon = 0.05,
    interpolation: flag.Interpolation = "linear",
    end: flag.End = "outcome",
    merge: flag.Merge = "none",
    reuse: flag.Reuse = "",
    threshold: flag.Threshold = 1.0,
    concurrency: flag.Concurrency = 8,
    max_cost: flag.MaxCost = None,
    yes: flag.Yes = False,
    retry_failed: flag.RetryFailed = False,
    dry_run: flag.DryRun = False,
    name: flag.Name = None,
    out: flag.Out = None,
    plain: flag.Plain = False,
    as_json: flag.AsJson = False,
) -> None:
    """Assign credit to the answers of unresolved rollouts, so that their useful stretches can be trained on.

    What it will cost is said before it starts. The same command goes on where an earlier one ended. Exits
    with 1 when a rollout, or a cell of a matrix, could not be estimated.
    """
    from orchard_core.cli.data.credit_launch import launch, print_prompt
    from orchard_core.cli.data.credit_request import branch_options, judge_options, named, rules_of
    from orchard_core.cli.options import key_values

    if show_prompt:
        print_prompt(template, as_json=as_json)
        return
    launch(
        flag.CreditFlags(
            path=named(path), estimator=estimator, name=name or reuse or estimator, out=out, reuse=reuse,
            rules=rules_of(epsilon=epsilon, interpolation=interpolation, end=end, merge=merge),
            threshold=threshold, judge=judge or "", judge_options=judge_options(judge_option, base_url),
            judge_params=key_values(param or (), "--param"), context_tokens=context_tokens, template=template,
            options=branch_options(option, max_rollouts), concurrency=concurrency, max_cost=max_cost,
            retry_failed=retry_failed, agreed=yes, dry_run=dry_run, plain=plain, as_json=as_json,
        )
    )  # fmt: skip
