"""The flags of `orchard run`, and what they mean as recipe fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from orchard_core.cli.options import key_values
from orchard_core.errors import ConfigError

_WHAT, _HOW, _LIMITS, _OUTPUT = "What to run", "How to run it", "Limits of each rollout", "Output"

Source = Annotated[
    str,
    typer.Argument(
        metavar="TASKSET|RECIPE.yaml",
        help="A task set, such as workbench:16, or a YAML recipe.",
        show_default=False,
    ),
]
Harness = Annotated[str | None, typer.Option(help="Harness [default: react].", rich_help_panel=_WHAT)]
Model = Annotated[
    str | None, typer.Option(help="Model, such as openai:NAME or oracle.", rich_help_panel=_WHAT)
]
BaseUrl = Annotated[
    str | None, typer.Option(help="Address of the model server, ending in /v1.", rich_help_panel=_WHAT)
]
Sandbox = Annotated[
    str | None, typer.Option(help="Sandbox provider [default: local].", rich_help_panel=_WHAT)
]
Task = Annotated[
    list[str] | None,
    typer.Option(
        metavar="GLOB", help="Only tasks whose id matches this glob. Repeatable.", rich_help_panel=_WHAT
    ),
]
Limit = Annotated[
    int | None, typer.Option(help="At most so many tasks, the first ones.", rich_help_panel=_WHAT)
]
Pairs = list[str] | None
TasksetOption = Annotated[
    Pairs,
    typer.Option(metavar="NAME=VALUE", help="An option of the task set. Repeatable.", rich_help_panel=_WHAT),
]
HarnessOption = Annotated[
    Pairs,
    typer.Option(metavar="NAME=VALUE", help="An option of the harness. Repeatable.", rich_help_panel=_WHAT),
]
HarnessConfig = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="The harness's own configuration, such as swebench.yaml for miniswe.",
        rich_help_panel=_WHAT,
    ),
]
ModelOption = Annotated[
    Pairs,
    typer.Option(metavar="NAME=VALUE", help="An option of the model. Repeatable.", rich_help_panel=_WHAT),
]
SandboxOption = Annotated[
    Pairs,
    typer.Option(
        metavar="NAME=VALUE", help="An option of the sandbox provider. Repeatable.", rich_help_panel=_WHAT
    ),
]
Attempts = Annotated[
    int | None, typer.Option(help="Attempts at each task [default: 1].", rich_help_panel=_HOW)
]
Concurrency = Annotated[int | None, typer.Option(help="Rollouts at once [default: 8].", rich_help_panel=_HOW)]
Workers = Annotated[
    int | None,
    typer.Option(
        help="Drivers that share the run, each with a part of its tasks; a matrix cannot be shared "
        "[default: 1].",
        rich_help_panel=_HOW,
    ),
]
On = Annotated[
    str | None,
    typer.Option(
        metavar="PLACE",
        help="Where they run: a workforce [default: processes].",
        rich_help_panel=_HOW,
    ),
]
WorkerOption = Annotated[
    Pairs,
    typer.Option(metavar="NAME=VALUE", help="An option of that place. Repeatable.", rich_help_panel=_HOW),
]
Seed = Annotated[
    int | None, typer.Option(help="Seed of everything that draws [default: 0].", rich_help_panel=_HOW)
]
HostFallback = Annotated[
    bool | None,
    typer.Option(
        "--allow-host-fallback",
        help="Run a task that names an image the provider does not take on this machine's files; recorded.",
        rich_help_panel=_HOW,
    ),
]
Out = Annotated[
    str | None, typer.Option(help="Run directory [default: a new one under runs/].", rich_help_panel=_HOW)
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume", help="Go on with the run in --out: exactly what is missing.", rich_help_panel=_HOW
    ),
]
MaxTurns = Annotated[int | None, typer.Option(help="Model answers acted upon.", rich_help_panel=_LIMITS)]
MaxCalls = Annotated[
    int | None,
    typer.Option(help="Model calls of any kind, which every harness is held to.", rich_help_panel=_LIMITS),
]
MaxTokens = Annotated[int | None, typer.Option(help="Input plus output tokens.", rich_help_panel=_LIMITS)]
MaxCost = Annotated[
    float | None, typer.Option(help="US dollars, of calls whose price is known.", rich_help_panel=_LIMITS)
]
Timeout = Annotated[
    float | None,
    typer.Option(help="Seconds for the agent; a task's own limit stays if lower.", rich_help_panel=_LIMITS),
]
PrintConfig = Annotated[
    bool, typer.Option("--print-config", help="Print the whole recipe and stop.", rich_help_panel=_OUTPUT)
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Load every part, say what would run, and stop.", rich_help_panel=_OUTPUT),
]
Plain = Annotated[
    bool, typer.Option("--plain", help="Plain lines instead of a live screen.", rich_help_panel=_OUTPUT)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.", rich_help_panel=_OUTPUT)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """What the user gave; None where a flag was left out."""

    source: str
    """Task set or recipe file; empty when a run is resumed."""
    harness: str | None
    """--harness"""
    model: str | None
    """--model"""
    harness_config: str | None
    """--harness-config"""
    base_url: str | None
    """--base-url"""
    sandbox: str | None
    """--sandbox"""
    task: Sequence[str] | None
    """--task"""
    limit: int | None
    """--limit"""
    options: Mapping[str, Sequence[str] | None]
    """NAME=VALUE pairs by the part they are for."""
    attempts: int | None
    """--attempts"""
    concurrency: int | None
    """--concurrency"""
    workers: int | None
    """--workers"""
    on: str | None
    """--on"""
    seed: int | None
    """--seed"""
    allow_host_fallback: bool | None
    """--allow-host-fallback"""
    out: str | None
    """--out"""
    limits: Mapping[str, int | float | None]
    """Limits by the name of their field."""

    @property
    def recipe_path(self) -> Path | None:
        """The recipe file, when the source is one."""
        path = Path(self.source)
        return path if path.suffix in {".yaml", ".yml"} else None

    def fields(self) -> dict[str, Any]:
        """As recipe fields, only what was given. Raises ConfigError for a pair that is none."""
        plain = {
            "taskset": self.source if self.source and not self.recipe_path else None,
            "harness": self.harness,
            "model": self.model,
            "sandbox": self.sandbox,
            "tasks": tuple(self.task) if self.task else None,
            "limit": self.limit,
            "attempts": self.attempts,
            "concurrency": self.concurrency,
            "workers": self.workers,
            "on": self.on,
            "seed": self.seed,
            "allow_host_fallback": self.allow_host_fallback,
            "out": self.out,
            **{
                f"{part}_options": key_values(pairs, f"--{part}-option")
                for part, pairs in self.options.items()
                if pairs
            },
        }
        limits = {name: value for name, value in self.limits.items() if value is not None}
        fields = {name: value for name, value in plain.items() if value is not None}
        if limits:
            fields["limits"] = limits
        _also(fields, "model", "base_url", self.base_url, "--base-url")
        _also(fields, "harness", "config_file", self.harness_config, "--harness-config")
        return fields


def _also(fields: dict[str, Any], part: str, option: str, value: str | None, flag: str) -> None:
    """A flag of its own for an option that many parts of its kind have. Raises ConfigError for two values."""
    if value is None:
        return
    options = fields.setdefault(f"{part}_options", {})
    if options.setdefault(option, value) != value:
        raise ConfigError(f"{flag} and --{part}-option {option}= differ", hint="give one of them")
