"""Writing workbench tasks as Harbor directories."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from random import Random

from pydantic import JsonValue

from orchard_core.errors import ConfigError
from orchard_core.tasks.harbor.write import TaskFiles, write_task
from orchard_core.tasks.workbench.chains import act_on_state, follow_notes
from orchard_core.tasks.workbench.code import fix_function
from orchard_core.tasks.workbench.files import damaged_files, tidy_files
from orchard_core.tasks.workbench.logs import find_error, status_report
from orchard_core.tasks.workbench.problem import WORKDIR, Family, Problem
from orchard_core.tasks.workbench.settings import config_edit
from orchard_core.tasks.workbench.tables import csv_totals, json_merge
from orchard_core.tasks.workbench.text import replace_terms, word_counts

FAMILIES: dict[str, Family] = {
    "tidy-files": tidy_files,
    "word-counts": word_counts,
    "csv-totals": csv_totals,
    "json-merge": json_merge,
    "config-edit": config_edit,
    "find-error": find_error,
    "fix-function": fix_function,
    "follow-notes": follow_notes,
    "act-on-state": act_on_state,
    "damaged-files": damaged_files,
    "replace-terms": replace_terms,
    "status-report": status_report,
}
"""Every family by name, in the order in which they are dealt out."""

TEST_SCRIPT = "#!/bin/sh\nexec python3 -I /tests/verify.py\n"


def write_workbench(parent: Path, *, count: int, seed: int = 0, families: Sequence[str] = ()) -> list[Path]:
    """Write `count` task directories under `parent`, dealing out the families in turn.

    The same arguments give the same bytes. Raises ConfigError for a family that does not exist.
    """
    chosen = list(families or FAMILIES)
    for name in chosen:
        if name not in FAMILIES:
            raise ConfigError(f"workbench has no family {name!r}", hint=f"choose among {', '.join(FAMILIES)}")
    made = []
    for index in range(count):
        family, number = chosen[index % len(chosen)], seed + index // len(chosen)
        made.append(write_task(parent, task_files(family, number)))
    return made


def task_files(family: str, seed: int) -> TaskFiles:
    """One task of one family."""
    problem = FAMILIES[family](Random(f"{family}:{seed}"))  # noqa: S311 - the same task for the same seed
    return TaskFiles(
        name=f"{family}-{seed}",
        instruction=problem.instruction,
        toml=_toml(problem, family, seed),
        files={
            **{f"environment/files/{name}": _bytes(content) for name, content in problem.files.items()},
            "tests/test.sh": TEST_SCRIPT.encode(),
            "tests/verify.py": (files("orchard_core.tasks.workbench") / "verify.py").read_bytes(),
            "tests/expected.json": _expected(problem),
        },
    )


def _toml(problem: Problem, family: str, seed: int) -> dict[str, JsonValue]:
    return {
        "schema_version": "1.0",
        "metadata": {
            "difficulty": problem.difficulty,
            "category": family,
            "seed": seed,
            "outputs": list(problem.expected),
        },
        "agent": {"timeout_sec": 300.0},
        "verifier": {"timeout_sec": 60.0},
        "environment": {"network_mode": "no-network", "workdir": WORKDIR},
        "orchard": {"artifacts": [WORKDIR], "steps": [asdict(step) for step in problem.steps]},
    }


def _expected(problem: Problem) -> bytes:
    outputs = {name: asdict(check) for name, check in problem.expected.items()}
    return json.dumps({"workdir": WORKDIR, "outputs": outputs}, indent=1).encode()


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content
