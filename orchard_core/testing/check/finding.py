"""What one test of a suite said, as one line of JSON on the way from the checking process."""

from __future__ import annotations

from typing import Literal

from orchard_core.types.base import Record

PAGE = "docs/reference/contract-suites.md"
"""Where each test is explained."""


class Finding(Record):
    """One test."""

    test: str
    """Its name, parameters included."""
    state: Literal["started", "passed", "failed", "skipped"]
    """How far it is."""
    rule: str = ""
    """What it asks of a plugin, and why, in a sentence."""
    seen: str = ""
    """What was seen instead, or why it was skipped."""
    link: str = ""
    """Where it is explained."""


def title(test: str) -> str:
    """A test's name in words: `test_a_task_is_finished[x]` is "a task is finished"."""
    return test.partition("[")[0].removeprefix("test_").replace("_", " ")


def link(kind: str, test: str) -> str:
    """The heading of this test in the reference."""
    return f"{PAGE}#{kind}-{title(test).replace(' ', '-')}"
