"""The flags of `orchard matrix` that `orchard run` does not have, and what they mean as recipe fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from orchard_core.cli.options import key_values
from orchard_core.errors import ConfigError

_WHAT, _HOW, _TOTAL = "What to run", "How to run it", "Bounds over the whole matrix"
CLASSES = ("infrastructure", "model", "harness")

Source = Annotated[
    str, typer.Argument(metavar="MATRIX.yaml", help="A YAML recipe of a matrix.", show_default=False)
]
Names = list[str] | None
Harness = Annotated[Names, typer.Option(help="A harness, such as react. Repeatable.", rich_help_panel=_WHAT)]
Model = Annotated[
    Names, typer.Option(help="A model, such as openai:NAME or oracle. Repeatable.", rich_help_panel=_WHAT)
]
Taskset = Annotated[
    Names, typer.Option(help="A task set, such as workbench:20. Repeatable.", rich_help_panel=_WHAT)
]
HarnessConfig = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Configuration of the harnesses named here, such as swebench.yaml for miniswe.",
        rich_help_panel=_WHAT,
    ),
]
HarnessOption = Annotated[
    Names,
    typer.Option(metavar="NAME=VALUE", help="An option of every harness named here.", rich_help_panel=_WHAT),
]
ModelOption = Annotated[
    Names,
    typer.Option(metavar="NAME=VALUE", help="An option of every model named here.", rich_help_panel=_WHAT),
]
TasksetOption = Annotated[
    Names,
    typer.Option(metavar="NAME=VALUE", help="An option of every task set named here.", rich_help_panel=_WHAT),
]
ModelConcurrency = Annotated[
    Names,
    typer.Option(metavar="MODEL=N", help="Rollouts at once with a model. Repeatable.", rich_help_panel=_HOW),
]
HarnessConcurrency = Annotated[
    Names,
    typer.Option(
        metavar="HARNESS=N", help="Rollouts at once under a harness. Repeatable.", rich_help_panel=_HOW
    ),
]
RetryFailed = Annotated[
    Names,
    typer.Option(
        metavar="CLASS",
        help="Start again what failed by this class: infrastructure, model, harness, all or none. "
        "Repeatable [default: infrastructure and model].",
        rich_help_panel=_HOW,
    ),
]
Strict = Annotated[
    bool | None,
    typer.Option("--strict", help="Start nothing when a cell cannot be run.", rich_help_panel=_HOW),
]
Out = Annotated[
    str | None,
    typer.Option(
        help="Matrix directory, new or to go on with [default: a new one under matrices/].",
        rich_help_panel=_HOW,
    ),
]
MaxCostTotal = Annotated[
    float | None,
    typer.Option(
        help="US dollars, earlier starts included, of calls whose price is known.", rich_help_panel=_TOTAL
    ),
]
MaxTokensTotal = Annotated[
    int | None, typer.Option(help="Tokens, earlier starts included.", rich_help_panel=_TOTAL)
]
MaxTime = Annotated[float | None, typer.Option(help="Seconds of this start.", rich_help_panel=_TOTAL)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFlags:
    """The parts of one kind that were named, and the options of each."""

    names: Sequence[str] | None
    """Such as those of --harness."""
    options: Sequence[str] | None
    """NAME=VALUE pairs."""
    flag: str
    """Such as `--harness`."""
    base_url: str | None = None
    """--base-url, for models."""
    config_file: str | None = None
    """--harness-config, for harnesses."""

    def parts(self) -> list[dict[str, Any]] | None:
        """As recipe fields; None when none was named. Raises ConfigError for options of nothing."""
        options = key_values(self.options or (), f"{self.flag}-option")
        if self.base_url is not None:
            options["base_url"] = self.base_url
        if self.config_file is not None:
            options["config_file"] = self.config_file
        if self.names:
            return [{"name": name, "options": options} for name in self.names]
        if options:
            raise ConfigError(
                f"there are options for {self.flag}, which was not given",
                hint=f"name it with {self.flag}; options of parts in a YAML file stand in the file",
            )
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixFlags:
    """What the user gave; None where a flag was left out."""

    harnesses: PartFlags
    """--harness and its options"""
    models: PartFlags
    """--model and its options"""
    tasksets: PartFlags
    """--taskset and its options"""
    sandbox: str | None
    """--sandbox"""
    sandbox_option: Sequence[str] | None
    """--sandbox-option"""
    model_concurrency: Sequence[str] | None
    """--model-concurrency"""
    harness_concurrency: Sequence[str] | None
    """--harness-concurrency"""
    retry_failed: Sequence[str] | None
    """--retry-failed"""
    limits: Mapping[str, int | float | None]
    """Limits of each rollout by the name of their field."""
    plain: Mapping[str, Any]
    """Flags that are recipe fields as they are."""

    def fields(self) -> dict[str, Any]:
        """As recipe fields, only what was given. Raises ConfigError."""
        found: dict[str, Any] = {
            **self.plain,
            "harnesses": self.harnesses.parts(),
            "models": self.models.parts(),
            "tasksets": self.tasksets.parts(),
            "sandbox": self._sandbox(),
            "model_concurrency": bounds(self.model_concurrency, "--model-concurrency") or None,
            "harness_concurrency": bounds(self.harness_concurrency, "--harness-concurrency") or None,
            "retry": retry_fields(self.retry_failed),
            "limits": {name: value for name, value in self.limits.items() if value is not None} or None,
        }
        return {name: value for name, value in found.items() if value is not None}

    def _sandbox(self) -> dict[str, Any] | None:
        options = key_values(self.sandbox_option or (), "--sandbox-option")
        named = {"name": self.sandbox} if self.sandbox else {}
        return {**named, "options": options} if options else named or None


def bounds(pairs: Sequence[str] | None, flag: str) -> dict[str, Any]:
    """`["openai:NAME=4"]` as a mapping; the name may hold dots. Raises ConfigError."""
    found = {}
    for pair in pairs or ():
        name, _, number = pair.rpartition("=")
        if not name or not number.isdecimal():
            raise ConfigError(f"{flag} {pair!r} is not NAME=NUMBER", hint=f"such as {flag} react=4")
        found[name] = int(number)
    return found


def retry_fields(classes: Sequence[str] | None) -> Mapping[str, int] | None:
    """Further tries by class: at least one for those named, none for the others. Raises ConfigError."""
    if not classes:
        return None
    from orchard_core.rollout.retry import RetryPolicy

    wrong = [name for name in classes if name not in {*CLASSES, "all", "none"}]
    if wrong:
        raise ConfigError(
            f"--retry-failed {wrong[0]!r} is no class of failures",
            hint=f"choose from {', '.join((*CLASSES, 'all', 'none'))}; what an agent did is never repeated",
        )
    usual = RetryPolicy().model_dump(include=set(CLASSES))
    chosen = CLASSES if "all" in classes else classes
    return {name: max(1, usual[name]) if name in chosen else 0 for name in CLASSES}
