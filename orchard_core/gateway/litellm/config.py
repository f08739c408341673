"""Options of the model `litellm`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from orchard_core.types.model import Price


class LiteLLMConfig(BaseModel):
    """Options of the model `litellm`."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    model: str = Field(min_length=1)
    """Vendor and model as LiteLLM names them, such as `anthropic/claude-sonnet-4-5`; what stands after
    `litellm:`."""
    api_key: SecretStr | None = None
    """The vendor's key; None: taken from the vendor's own variable, such as ANTHROPIC_API_KEY."""
    base_url: str = ""
    """Root of the API; empty: the vendor's own."""
    price: Price | None = None
    """Dollars per million tokens; None: LiteLLM's own table, and unknown where that has none."""
    concurrency: int | None = Field(default=None, ge=1)
    """Calls in flight at most, over all rollouts; None: as many as the vendor bears."""
    timeout_s: float = Field(default=600.0, gt=0)
    """Time for a whole answer, seconds."""
    drop_unsupported: bool = False
    """Leave out parameters that the vendor does not know, instead of failing the call."""
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    """Further headers of every request; their values are kept secret."""
