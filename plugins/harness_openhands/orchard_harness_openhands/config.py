"""Options of the harness."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, JsonValue


class OpenHandsConfig(BaseModel):
    """Options of `openhands`, all with a default."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    condense: bool = True
    """Summarise a long conversation by a model call of its own, as OpenHands does by default."""
    llm: Mapping[str, JsonValue] = Field(default_factory=dict)
    """Fields of OpenHands' LLM, such as temperature, top_p, max_output_tokens or native_tool_calling."""
