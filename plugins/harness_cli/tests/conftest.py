"""What these tests need of the machine."""

from __future__ import annotations

import shutil

import pytest


@pytest.fixture(autouse=True)
def node_and_npm() -> None:
    """The CLIs are fetched by npm, and some run on Node.js."""
    if missing := [name for name in ("node", "npm") if shutil.which(name) is None]:
        pytest.skip(f"needs {' and '.join(missing)}: install Node.js 20 or newer, from nodejs.org")
