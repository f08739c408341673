"""From a claw-bench task to a task directory in Harbor shape.

The tasks speak of `workspace/`, a directory that their own runner makes and names in full; here it is
/workspace. 36 set-up scripts ignore the directory they are given and write to `workspace` beside themselves;
they run on a private copy in which that name leads to /workspace. The runner's rule that the files of
environment/data are copied after the set-up is kept.
"""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

from orchard_core import TaskFiles
from orchard_domain_claw.source import ClawTask

WORKDIR = "/workspace"
"""What `workspace/` means inside."""
VERIFIER_TIMEOUT_S = 120.0
"""What claw-bench's own runner gives a verifier, seconds."""

OURS = files("orchard_domain_claw")
"""Where judge.py and report.py lie, which run inside."""

_MENTION = re.compile(r"(?<![\w./-])workspace/")
_WORKSPACE = re.compile(r'^WORKSPACE="\$\{1:-[^}\n]*\}"[ \t]*$', re.MULTILINE)
_TASK_DIR = re.compile(r"^TASK_DIR=.*\n", re.MULTILINE)

SET_UP = """#!/bin/sh
set -eu
task="$ORCHARD_ENVIRONMENT/task"
ln -s "$ORCHARD_WORKDIR" "$task/workspace"
(cd "$task" && bash environment/setup.sh "$ORCHARD_WORKDIR")
if [ -d "$task/environment/data" ]; then
  cp -R "$task/environment/data/." "$ORCHARD_WORKDIR/"
fi
"""

TEST = """#!/bin/sh
cd /tests
python3 -c 'import pytest, yaml' || exit 3
exec python3 -I /tests/judge.py verifier/test_output.py --workspace="$WORKSPACE" --rootdir=/tests \\
  -p no:cacheprovider -q --tb=short --no-header --color=no
"""


def convert(task: ClawTask, tasks_root: Path) -> TaskFiles:
    """The task's directory, ready to be written."""
    toml, root = task.toml, task.root
    return TaskFiles(
        name=toml.id,
        instruction=_MENTION.sub(f"{WORKDIR}/", (root / "instruction.md").read_text(encoding="utf-8")),
        toml={
            "schema_version": "1.0",
            "metadata": {
                "title": toml.title,
                "description": toml.description,
                "difficulty": toml.level,
                "category": toml.domain,
                "tags": list(toml.tags),
                "capabilities": list(toml.capabilities),
                "capability_types": list(toml.capability_types),
            },
            "agent": {"timeout_sec": toml.timeout},
            "verifier": {"timeout_sec": VERIFIER_TIMEOUT_S, "env": {"WORKSPACE": WORKDIR}},
            "environment": {"network_mode": "no-network", "workdir": WORKDIR},
            "orchard": {"artifacts": [WORKDIR], "files": ""},
        },
        trees={"environment/task/environment": root / "environment", "tests/verifier": root / "verifier"},
        files={
            "environment/setup.sh": SET_UP.encode(),
            "solution/solve.sh": solution(root).encode(),
            "tests/test.sh": TEST.encode(),
            "tests/judge.py": (OURS / "judge.py").read_bytes(),
            "tests/orchard_report.py": (OURS / "report.py").read_bytes(),
            "tests/conftest.py": (tasks_root / "conftest.py").read_bytes(),
        },
    )


def solution(root: Path) -> str:
    """solve.sh with its workspace filled in, as if it had been called with it as its argument."""
    script = (root / "solution" / "solve.sh").read_text(encoding="utf-8")
    filled = _WORKSPACE.sub(f"WORKSPACE={WORKDIR}", script)
    without = _TASK_DIR.sub("", filled, count=1)
    return filled if "TASK_DIR" in without else without
