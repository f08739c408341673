"""No green run hides that nothing was tried in a real sandbox."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_CASE = (
    "tests/contracts/test_builtin_sandboxes.py", "-k", "TestLocalProvider and what_the_contract_names",
)  # fmt: skip


@pytest.mark.parametrize(("required", "outcome"), [("", "skipped"), ("1", "error")])
def test_a_host_that_cannot_isolate_is_skipped_or_an_error(required: str, outcome: str) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *_CASE],
        cwd=_ROOT, env=kept | {"ORCHARD_STATE_DIR": "/proc/none", "ORCHARD_REQUIRE_LOCAL": required},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    summary = done.stdout.splitlines()[-1]
    assert outcome in summary, done.stdout
    assert "passed" not in summary
    assert done.returncode == (1 if required else 0)
