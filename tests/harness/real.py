"""Harnesses that other people wrote, where they can be had."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from orchard_core import ConfigError, Harness, PluginError, load_harness, mounts_of

NIGHTLY = "ORCHARD_NIGHTLY"
EVERY_TIME = frozenset({"pi"})
"""Coding CLIs that are small enough to be fetched in every run."""
STANDIN = Path(__file__).parents[2] / "plugins/harness_zeroclaw/tests/standin/zeroclaw"
OPTIONS: dict[str, dict[str, Any]] = {"zeroclaw": {"binary": shutil.which("zeroclaw") or STANDIN}}
"""Where ZeroClaw itself is not on PATH, its stand-in plays."""


async def real_harness(name: str) -> Harness:
    """The harness, its program fetched and ready. Skips where it cannot be had, and says how to get it;
    `make nightly` takes that for a failure, unless its distribution is not installed at all."""
    try:
        harness = load_harness(name, **OPTIONS.get(name, {}))
    except PluginError as error:
        pytest.skip(f"{name} is not installed: {error}")
    if _heavy(name) and NIGHTLY not in os.environ:
        pytest.skip(f"{name} is not here: `make nightly` fetches it by npm")
    try:
        await mounts_of(harness)
    except ConfigError as error:
        if NIGHTLY in os.environ:
            raise
        pytest.skip(f"{name} is not to be had here: {error}; {error.hint}")
    return harness


def _heavy(name: str) -> bool:
    """It would first have to be fetched, which takes long."""
    kind, _, cli = name.partition(":")
    if kind != "cli" or cli in EVERY_TIME:
        return False
    from orchard_harness_cli.adapter import find_adapter

    return not find_adapter(cli).npm.installed
