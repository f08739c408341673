"""A tool that remembers how it was called."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import JsonValue

from orchard_core.types.tool import ToolResult

_ANY_TEXT: Mapping[str, JsonValue] = {"type": "object", "properties": {"words": {"type": "string"}}}


class FakeTool:
    """Honours `orchard_core.Tool`; by default it echoes its argument `words`."""

    def __init__(
        self,
        name: str = "echo",
        act: Callable[[Mapping[str, JsonValue]], ToolResult] | None = None,
        *,
        description: str = "Gives back its argument `words`.",
        parameters: Mapping[str, JsonValue] = _ANY_TEXT,
    ) -> None:
        self._name = name
        self._act = act or (lambda args: ToolResult.text(str(args.get("words", ""))))
        self._description = description
        self._parameters = parameters
        self.calls: list[Mapping[str, JsonValue]] = []
        """The arguments of every call."""

    @property
    def name(self) -> str:
        """See Tool."""
        return self._name

    @property
    def description(self) -> str:
        """See Tool."""
        return self._description

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        """See Tool."""
        return self._parameters

    async def call(self, args: Mapping[str, JsonValue]) -> ToolResult:
        """See Tool."""
        self.calls.append(args)
        return self._act(args)
