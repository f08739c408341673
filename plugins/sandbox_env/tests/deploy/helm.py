"""The real Helm, in process in an interpreter of its own: it is too large to be a dependency."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchard_core import ConfigError, managed_python

ROOT = Path(__file__).parents[4]
CHART = ROOT / "deploy" / "chart"
_HERE = Path(__file__).parent
RELEASE = {"name": "orchard-env", "namespace": "orchard-env"}

Values = Mapping[str, Any]
Manifest = dict[str, Any]


class Refused(AssertionError):
    """Helm would not, and says why."""


class Helm:
    """Calls of Helm about our chart."""

    def __init__(self, python: Path) -> None:
        self._python = python

    def call(self, call: str, values: Values | None = None, **about: Any) -> Any:
        """What it gives. Raises Refused."""
        asked = {"call": call, "chart": str(CHART), "values": values or {}, "about": about}
        done = subprocess.run(
            [str(self._python), str(_HERE / "helm_calls.py")],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            env={name: os.environ[name] for name in ("HOME", "KUBECONFIG", "PATH") if name in os.environ},
        )
        assert done.returncode == 0, done.stderr
        outcome = json.loads(done.stdout.splitlines()[-1])
        if "refused" in outcome:
            raise Refused(outcome["refused"])
        return outcome["given"]

    def objects(self, values: Values | None = None, **about: str) -> list[Manifest]:
        """What `helm template` makes of the values."""
        rendered = self.call("render", values, **{**RELEASE, **about})
        texts = [text for name, text in sorted(rendered.items()) if name.endswith(".yaml")]
        return [one for text in texts for one in yaml.safe_load_all(text) if one]


def get_helm() -> Helm:
    """Helm; skips where there is no chart, or the interpreter cannot be made."""
    if not CHART.is_dir():
        pytest.skip("the chart is in the repository, and these tests have left it")
    try:
        python = asyncio.run(
            managed_python(
                "deploy-helm",
                _HERE / "helm.txt",
                python="3.11",
                size="70 MB",
                variable="ORCHARD_TEST_HELM_PYTHON",
            )
        )
    except ConfigError as error:
        pytest.skip(f"the chart is checked by Helm itself, which needs an index or a cache of it: {error}")
    return Helm(python)


def only(objects: list[Manifest], kind: str, name: str | None = None) -> Manifest:
    """The one object of that kind, and of that name where one is given."""
    found = [one for one in objects if one["kind"] == kind and name in (None, one["metadata"]["name"])]
    assert len(found) == 1, f"{len(found)} of {kind} {name}"
    return found[0]
