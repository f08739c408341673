"""The models that judge: one for all rollouts, or for each rollout the model that acted in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from orchard_core.datasets.credit.judge.view import TrajectoryView
from orchard_core.errors import ConfigError, CreditRefused, PluginError
from orchard_core.gateway.contract import Model
from orchard_core.plugins.lookup import load_model
from orchard_core.rollout.store.run import read_config

SELF = "self"
"""Written for the judge: each trajectory's own model, as in the paper."""


class JudgeModels:
    """Loads each model once, when it is first needed. Use it as an async context manager."""

    def __init__(self, judge: str, options: Mapping[str, JsonValue]) -> None:
        """`judge` as the user wrote it, or `self`; `options` go over those that a run was made with."""
        self._judge = judge
        self._options = options
        self._loaded: dict[str, Model] = {}
        self._runs: dict[Path, tuple[str, dict[str, Any]]] = {}

    def __call__(self, view: TrajectoryView) -> Model:
        """The model that judges a trajectory. Raises ConfigError and PluginError when it cannot be had,
        CreditRefused when it is the trajectory's own."""
        name, options = self._named(view)
        key = json.dumps([name, options], sort_keys=True, default=str)
        if key not in self._loaded:
            self._loaded[key] = self._load(name, options)
        return self._loaded[key]

    def _load(self, name: str, options: Mapping[str, Any]) -> Model:
        try:
            return load_model(name, **options)
        except (ConfigError, PluginError) as error:
            if self._judge != SELF:
                raise
            raise CreditRefused(
                f"its own model, {name}, cannot be had: {error.message}",
                hint=error.hint or "name one for all with --judge",
            ) from error

    def _named(self, view: TrajectoryView) -> tuple[str, dict[str, Any]]:
        if self._judge != SELF:
            return self._judge, dict(self._options)
        name, options = (view.model, {}) if view.run is None else self._of_run(view.run)
        return name, {**options, **self._options}

    def _of_run(self, run: Path) -> tuple[str, dict[str, Any]]:
        """The run's model as the user wrote it, and its options."""
        if run not in self._runs:
            config = read_config(run)
            recipe = config.options.get("recipe")
            fields = recipe if isinstance(recipe, dict) else {}
            options = fields.get("model_options")
            name = str(fields.get("model") or config.model)
            self._runs[run] = name, dict(options) if isinstance(options, dict) else {}
        return self._runs[run]

    async def __aenter__(self) -> JudgeModels:
        return self

    async def __aexit__(self, *exc: object) -> None:
        for model in self._loaded.values():
            await model.close()
