"""`orchard check`: each broken rule is named in words, with what was seen and where to read on."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from .conftest import Orchard

HARNESS = """
import aiohttp, asyncio, os, sys
from orchard_core import Descriptor, HarnessCapabilities, HarnessResult, StopReason, hookimpl

class Odd:
    name, version, capabilities = "odd", "1", HarnessCapabilities(turn_limit=False)

    async def run(self, task, sandbox, model, tools, limits):
        {act}

@hookimpl
def orchard_harnesses():
    return [Descriptor(name="odd", summary="Odd", factory=Odd)]
"""

ONLY_CALLS = ("--only", "every call goes through")
ONLY_TASK = ("--only", "a_task_is_finished")


@pytest.fixture
def check(orchard: Orchard, plugin_path: Callable[[str, str], str]) -> Callable[..., dict[str, object]]:
    """`check(act, *flags)` checks a harness whose `run` does this; gives its result."""

    def run(act: str, *flags: str) -> dict[str, object]:
        path = plugin_path("oddity", HARNESS.format(act=act))
        done = orchard("check", "harness:odd", "--sandbox", "fake", "--json", *flags, PYTHONPATH=path)
        assert done.returncode == 1, done.stderr
        (result,) = json.loads(done.stdout)
        assert isinstance(result, dict)
        return result

    return run


Check = Callable[..., dict[str, object]]


def failures(result: dict[str, object]) -> dict[str, dict[str, str]]:
    failed = result["failed"]
    assert isinstance(failed, list)
    return {entry["test"]: entry for entry in failed}


def test_a_broken_rule_is_told_with_its_reason_and_its_page(check: Check) -> None:
    broken = failures(check("return HarnessResult(stop=StopReason.SUBMITTED, answer='done')", *ONLY_CALLS))
    told = broken["test_every_call_goes_through_the_session"]
    assert told["rule"].startswith("What the gateway does not see is never trained on")
    assert told["seen"]
    page = "docs/reference/contract-suites.md"
    assert told["link"] == f"{page}#harness-every-call-goes-through-the-session"


def test_what_a_plugin_prints_is_no_finding(check: Check) -> None:
    result = check(
        """print('{"test": "x", "state": "passed"}', flush=True); raise RuntimeError("odd")""", *ONLY_TASK
    )
    assert "test_a_task_is_finished" in failures(result)
    assert "odd" in failures(result)["test_a_task_is_finished"]["seen"]


def test_a_plugin_that_hangs_is_ended_and_named(check: Check) -> None:
    broken = failures(check("import time; time.sleep(3600)", "--quiet", "2"))
    assert broken["test_a_task_is_finished"]["seen"] == "it said nothing for 2 s"


def test_a_plugin_that_ends_the_process_is_named(check: Check) -> None:
    broken = failures(check("os._exit(9)"))
    assert "ended with 9" in broken["test_a_task_is_finished"]["seen"]


def test_a_sound_plugin_passes_and_says_what_did_not_apply(orchard: Orchard) -> None:
    done = orchard("check", "model:oracle")
    assert done.returncode == 0, done.stdout
    assert "0 fail" in done.stdout


def test_a_name_alone_finds_its_kind(orchard: Orchard) -> None:
    done = orchard("check", "noisy-oracle:0.2", "--json")
    assert done.returncode == 0, done.stdout
    assert [one["subject"] for one in json.loads(done.stdout)] == ["model:noisy-oracle:0.2"]


def test_what_is_not_installed_is_refused(orchard: Orchard) -> None:
    done = orchard("check", "no-such-thing")
    assert done.returncode == 2
    assert "no plugin or distribution is named 'no-such-thing'" in done.stderr


def test_a_broken_distribution_is_told_by_its_own_error(
    orchard: Orchard, plugin_path: Callable[[str, str], str]
) -> None:
    path = plugin_path("broken", "raise ValueError('not today')")
    done = orchard("check", "broken", PYTHONPATH=path)
    assert done.returncode == 2
    assert "not today" in done.stderr


def test_what_differed_is_told_and_not_only_that_an_assertion_failed(check: Check) -> None:
    broken = failures(check("return HarnessResult(stop=StopReason.ERROR)", *ONLY_TASK))
    assert "StopReason.ERROR" in broken["test_a_task_is_finished"]["seen"]


def test_a_plugin_that_cannot_be_made_is_told_once(
    orchard: Orchard, plugin_path: Callable[[str, str], str]
) -> None:
    path = plugin_path("oddity", HARNESS.format(act="pass").replace("capabilities =", "_ ="))
    done = orchard("check", "harness:odd", "--sandbox", "fake", PYTHONPATH=path)
    assert done.returncode == 1
    assert done.stdout.count("which lacks capabilities of the Harness contract") == 1
