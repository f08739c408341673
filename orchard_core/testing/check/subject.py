"""What is checked."""

from __future__ import annotations

from collections.abc import Mapping

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
