"""Inspect, the real package, in the sandboxes of a real service."""

from __future__ import annotations

import os
import re
import signal

import pytest

from ..service.running import GENEROUS_S
from .environments import PROGRAMS, Framework, end

pytestmark = pytest.mark.slow


def test_inspects_own_checks_pass(inspect: Framework) -> None:
    said = inspect.run(
        *("-m", "pytest", "-q", "-c", os.devnull, "--noconftest", "--rootdir", str(inspect.scratch)),
        *("-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=module"),
        *("-o", "asyncio_default_test_loop_scope=module", "-p", "no:cacheprovider"),
        str(PROGRAMS / "inspect_self_check.py"),
    )
    found = re.search(r"(\d+) passed, 1 xfailed in", said)
    assert found is not None, said
    assert int(found[1]) >= 43
    assert inspect.standing() == []


def test_an_evaluation_uses_its_tools_in_a_sandbox(inspect: Framework) -> None:
    told = inspect.tell(
        "inspect_eval.py", "awk '{ s += $1 } END { print s }' data/numbers.txt | tee sum.txt; cat set.txt"
    )
    assert told == {"status": "success", "error": None, "accuracy": 1.0, "tool": ["42\n/workspace\n"]}
    assert inspect.standing() == []


def test_an_interrupted_evaluation_leaves_no_sandbox(inspect: Framework) -> None:
    running = inspect.start(str(PROGRAMS / "inspect_eval.py"), "sleep 1000")
    try:
        assert len(inspect.until_standing(1)) == 1
        os.killpg(running.pid, signal.SIGINT)
        running.communicate(timeout=GENEROUS_S)
        assert inspect.standing() == []
    finally:
        end(running)


def test_what_a_killed_evaluation_left_is_cleaned_up_by_inspects_own_command(inspect: Framework) -> None:
    with inspect.service.client() as client:
        client.post("/v2/sandboxes", json={"spec": {"name": "a-neighbour"}}).raise_for_status()
        running = inspect.start(str(PROGRAMS / "inspect_left.py"))
        try:
            assert running.stdout is not None
            left = running.stdout.readline().strip()
        finally:
            end(running)
        assert sorted(inspect.standing()) == sorted(["a-neighbour", left])
        said = inspect.run("-m", "inspect_ai", "sandbox", "cleanup", "orchard")
        assert f"deleted {left}\n" in said
        assert inspect.standing() == ["a-neighbour"]
        client.delete("/v2/sandboxes/a-neighbour").raise_for_status()


def test_errors_limits_and_configurations_are_as_inspect_wants_them_and_what_needs_a_build_is_refused(
    inspect: Framework,
) -> None:
    facts = inspect.tell("inspect_behaviour.py")
    assert facts["cancelled"] is True
    assert facts["config"] == [True, 1, "oci:python:3.12"]
    assert facts["named"] == "oci:registry.example/team/image:1"
    assert facts["too much"].startswith("OutputLimitExceededError: ")
    assert facts["timeout"].startswith("TimeoutError: ")
    assert facts["user"].startswith("SandboxUserUnsupportedError: ")
    assert facts["missing"] == 127
    assert facts["place"] == "/work\nred\n"
    assert facts["mode kept"] == "two\n"
    assert facts["composed"] == ["oci:python:3.12", "/work", {"A": "1"}, 1024, 2.0, "none"]
    assert facts["gone"].startswith("SandboxUnavailableError: ")
    assert inspect.standing() == []
    refused = facts["refusals"]
    assert "builds no images, and Dockerfile is a Dockerfile" in refused["dockerfile"]
    assert "the compose service default is built" in refused["built"]
    assert "asks for what a sandbox does not give: volumes" in refused["mounted"]
    assert "the compose file has 2" in refused["several"]
