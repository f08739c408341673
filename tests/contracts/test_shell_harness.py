"""The shell harness of docs/how-to/harness-in-any-language.md keeps the contract of every harness."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import ClassVar

import pytest

from orchard_core import Harness, SandboxProvider
from orchard_core.plugins.lookup import load_harness, load_provider
from orchard_core.testing import HarnessSuite

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "harness-in-any-language.md"
MISSING = [name for name in ("curl", "jq") if shutil.which(name) is None]


def example() -> str:
    """The page's script."""
    return PAGE.read_text(encoding="utf-8").partition("# file: shell-harness.sh\n")[2].partition("```")[0]


def test_the_example_has_no_more_than_30_lines() -> None:
    assert example().startswith("#!/bin/sh\n")
    assert example().count("\n") <= 30


class ShellSuite(HarnessSuite):
    """In a sandbox without isolation, which is all that it needs."""

    mcp_name: ClassVar[str] = "{}"

    async def make_provider(self) -> SandboxProvider:
        return load_provider("process")

    @pytest.fixture
    def harness(self, tmp_path: Path) -> Harness:
        """The example as it stands in the page."""
        if MISSING:
            pytest.skip(f"it needs {' and '.join(MISSING)}: apt-get install {' '.join(MISSING)}")
        script = tmp_path / "shell-harness.sh"
        script.write_text(example())
        script.chmod(0o755)
        return load_harness(f"command:{script}")


@pytest.mark.slow
class TestShellHarness(ShellSuite):
    """Everything."""
