"""Options of the harness."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator

OwnTool = Literal["bash", "read_file", "write_file", "edit_file", "submit"]
OWN_TOOLS: tuple[OwnTool, ...] = ("bash", "read_file", "write_file", "edit_file", "submit")

_OURS = frozenset({"model", "messages", "tools", "stream", "stream_options"})


class ReactConfig(BaseModel):
    """Options of `react`, all with a default."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    protocol: Literal["native", "text"] = "native"
    """native: the server's function calling; text: calls are written in the answer, for models without it."""
    tools: tuple[OwnTool, ...] = OWN_TOOLS
    """The harness's own tools to offer; a task's tool of the same name takes precedence. Without `submit`,
    an answer that calls nothing is the final answer."""
    system_template: Path | None = None
    """Jinja2 file that replaces the system prompt; see the README for what it may use."""

    observation_limit: int = Field(default=16_000, ge=1000)
    """Characters of one tool result that the model sees; beyond it, the head and the tail."""
    keep_images: int | None = Field(default=None, ge=0)
    """Pictures that stay in the conversation, newest first; None: all. Taking one out changes what was
    said before, so the rollout falls into several training samples."""
    bash_timeout_s: float = Field(default=120.0, gt=0)
    """Limit of one command unless the model asks for another, seconds."""
    bash_timeout_max_s: float = Field(default=1800.0, gt=0)
    """The longest limit the model may ask for, seconds."""
    malformed_limit: int = Field(default=3, ge=1)
    """Answers in a row without a single call that could be understood, after which the rollout ends."""

    temperature: float | None = Field(default=None, ge=0)
    """Sampling temperature; None: the server's default."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """Nucleus sampling; None: the server's default."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Tokens of one answer at most; None: the server's default."""
    extra_body: Mapping[str, JsonValue] = Field(default_factory=dict)
    """Further fields of every request, such as `seed`, `top_k` or `chat_template_kwargs`."""
    stream: bool = False
    """Ask for server-sent events."""
    model_timeout_s: float = Field(default=1800.0, gt=0)
    """Limit of one model call, its waiting in the gateway included, seconds."""

    @field_validator("extra_body")
    @classmethod
    def _leaves_ours_alone(cls, value: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        if clash := sorted(_OURS & set(value)):
            raise ValueError(f"{', '.join(clash)} cannot be set here: the harness sets it")
        return value

    def sampling(self) -> dict[str, JsonValue]:
        """Fields that every request carries."""
        own = {"temperature": self.temperature, "top_p": self.top_p, "max_tokens": self.max_tokens}
        return {**{name: value for name, value in own.items() if value is not None}, **self.extra_body}
