"""What `orchard check` checks and finds; both cross a pipe to the process that runs a contract suite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, JsonValue

from orchard_core.types.base import Record
from orchard_core.types.plugin import PluginKind


class Subject(Record):
    """One plugin as the user named it."""

    kind: PluginKind
    """What it is."""
    spec: str
    """Its written form, such as `cli:pi`."""
    options: Mapping[str, JsonValue] = Field(default_factory=dict)
    """Its options."""
    sandbox: str = "local"
    """The provider whose sandboxes it is tried in; `fake` for plain subprocesses."""
    policy: str = "fake-policy"
    """For trainers: the model directory or name to start from."""
    only: str = ""
    """Run only tests whose name holds this text; empty: all."""


class Finding(Record):
    """One test of a suite."""

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
