"""Tool definitions as the model was shown them, whichever dialect."""

from __future__ import annotations

import json

from pydantic import JsonValue

from orchard_core.types.trajectory import Trajectory
from orchard_core.viewer.trace.parts import ToolView

_MOST, _LONGEST, _PARSED = 200, 6_000, 4 << 20


def tools_of(trajectory: Trajectory) -> tuple[ToolView, ...]:
    """Those of the first call that was shown any."""
    name = next((call.tools for call in trajectory.calls if call.tools), None)
    return tool_views(trajectory.blobs.get(name, "")) if name else ()


def tool_views(text: str) -> tuple[ToolView, ...]:
    """Those in a JSON array; none where it cannot be read."""
    try:
        given = json.loads(text) if len(text) <= _PARSED else []
    except (ValueError, RecursionError):
        return ()
    every = given if isinstance(given, list) else []
    return tuple(_view(tool) for tool in every[:_MOST] if isinstance(tool, dict))


def _view(tool: dict[str, JsonValue]) -> ToolView:
    inner = tool.get("function")
    told = inner if isinstance(inner, dict) else tool
    schema = told.get("parameters", told.get("input_schema", told.get("format")))
    return ToolView(
        name=str(told.get("name") or tool.get("type") or "")[:200],
        description=str(told.get("description") or "")[:_LONGEST],
        schema="" if schema is None else json.dumps(schema, ensure_ascii=False, indent=1)[:_LONGEST],
    )
