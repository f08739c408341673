"""What a test does where the local provider cannot run."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

from orchard_core.errors import SandboxUnavailable

REQUIRE_LOCAL = "ORCHARD_REQUIRE_LOCAL"


def skip_without_isolation(error: SandboxUnavailable) -> NoReturn:
    """Skip the test; or, with ORCHARD_REQUIRE_LOCAL=1, fail it, so that no green run hides that nothing was
    tried in a real sandbox."""
    if os.environ.get(REQUIRE_LOCAL) == "1":
        raise error
    pytest.skip(f"this host cannot isolate: {error}")
