"""Nothing heavy is imported until it is used."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from .conftest import environment

HEAVY = (
    "aiohttp", "asyncio", "httpx", "jinja2", "multiprocessing", "orjson", "pydantic", "pydantic_core", "rich",
    "uvicorn", "uvloop", "yaml", "zstandard", "orchard_core.gateway", "orchard_core.rollout",
    "orchard_core.sandbox", "orchard_core.tasks", "orchard_core.types.rollout", "orchard_core.testing",
)  # fmt: skip

PROBE = """
import json, sys
sys.argv = ["orchard", *{args!r}]
from orchard_core.cli.main import main
try:
    main()
except SystemExit:
    pass
sys.stderr.write("MODULES" + json.dumps(sorted(sys.modules)))
"""


def modules_after(*args: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(args=args)],
        env=environment(), capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return set(json.loads(done.stderr.partition("MODULES")[2]))


@pytest.mark.parametrize(
    "args", [(), ("--help",), ("--version",), ("run", "--help"), ("plugins",), ("plugins", "--json")]
)
def test_help_and_plugins_import_nothing_heavy(args: tuple[str, ...]) -> None:
    loaded = modules_after(*args)
    assert "orchard_core.cli.main" in loaded, "the probe looks at the real command"
    assert [name for name in HEAVY if name in loaded] == []


def test_the_probe_sees_heavy_modules_when_a_command_uses_them() -> None:
    assert {"pydantic", "orchard_core.rollout.store.run"} <= modules_after("show", "no-such-run")
