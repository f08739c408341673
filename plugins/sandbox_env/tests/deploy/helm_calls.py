"""One call of Helm, in an interpreter that has it: JSON in by standard input, JSON out by standard output."""

from __future__ import annotations

import json
import sys
from typing import Any

import helm_python as helm  # type: ignore[import-not-found]


def call(asked: dict[str, Any]) -> object:
    """What Helm gives."""
    chart, values, about = asked["chart"], asked.get("values") or {}, asked.get("about") or {}
    match asked["call"]:
        case "lint":
            return helm.lint(chart, values, strict=True)
        case "render":
            return helm.Chart.load(chart).render(values, **about)
        case "install" | "upgrade" as act:
            name = about.pop("name")
            config = helm.Config(namespace=about["namespace"])
            return dict(getattr(config, act)(chart, name, values, **about))
        case "uninstall":
            config = helm.Config(namespace=about["namespace"])
            return dict(config.uninstall(about["name"], wait="watcher", timeout=120, ignore_not_found=True))
    raise ValueError(asked["call"])


try:
    outcome = {"given": call(json.load(sys.stdin))}
except helm.HelmError as error:
    outcome = {"refused": str(error)}
sys.stdout.write(json.dumps(outcome) + "\n")
