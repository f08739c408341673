"""A tool that stands before another one, for those that change its call."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from orchard_core.tasks.contract import Tool
from orchard_core.types.tool import ToolResult


class ToolWrapper:
    """Honours `orchard_core.Tool`; everything goes straight to the tool it stands before."""

    def __init__(self, tool: Tool) -> None:
        self._tool = tool

    @property
    def name(self) -> str:
        """See Tool."""
        return self._tool.name

    @property
    def description(self) -> str:
        """See Tool."""
        return self._tool.description

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        """See Tool."""
        return self._tool.parameters

    async def call(self, args: Mapping[str, JsonValue]) -> ToolResult:
        """See Tool."""
        return await self._tool.call(args)
