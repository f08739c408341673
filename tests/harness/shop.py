"""A task whose tools end it, and the story of it that every harness must tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from orchard_core import Text, Tool, ToolResult
from orchard_core.testing import FakeTool

Called = tuple[str, Mapping[str, JsonValue]]
"""A tool's name and its arguments."""
SCRIPT: Sequence[Called] = (
    ("price", {"item": "an apple's"}),
    ("price", {"item": "pear"}),
    ("report", {"cents": 42}),
    ("price", {"item": "too late"}),
)
"""What the model calls; the third call ends the episode, so that the last one must not happen."""


def shop(called: list[Called]) -> Sequence[Tool]:
    """Tells prices, except of pears, and takes a report; each call is noted."""

    def price(args: Mapping[str, JsonValue]) -> ToolResult:
        called.append(("price", args))
        if args["item"] == "pear":
            return ToolResult.text("no pears today", is_error=True)
        return ToolResult.text(f"{args['item']} costs 42 cents")

    def report(args: Mapping[str, JsonValue]) -> ToolResult:
        called.append(("report", args))
        return ToolResult(content=(Text(text="thank you"),), ends=True, answer=str(args["cents"]))

    item: Mapping[str, JsonValue] = {"type": "object", "properties": {"item": {"type": "string"}}}
    cents: Mapping[str, JsonValue] = {"type": "object", "properties": {"cents": {"type": "integer"}}}
    return [FakeTool("price", price, parameters=item), FakeTool("report", report, parameters=cents)]
