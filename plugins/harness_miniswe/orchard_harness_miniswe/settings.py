"""Options of the harness, and mini-swe-agent's own YAML files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from orchard_core import ConfigError
from orchard_harness_miniswe.model import TextModel, ToolModel
from orchard_harness_miniswe.stock import get_agent_class, get_config_from_spec, recursive_merge

_NOT_SENT = frozenset({
    "additional_drop_params", "allowed_openai_params", "api_base", "api_key", "api_version", "base_url",
    "custom_llm_provider", "drop_params", "max_retries", "messages", "model", "num_retries", "stream",
    "stream_options", "timeout", "tools",
})  # fmt: skip
"""Keyword arguments of litellm that are no fields of a request, and fields that are the harness's."""
_NAMES = "give a path, or a name it ships: mini.yaml, mini_textbased.yaml, swebench.yaml"


class MinisweConfig(BaseModel):
    """Options of `miniswe`, all with a default."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    config_file: str = "mini.yaml"
    """A YAML file of mini-swe-agent: a path, or the name of one that it ships, such as swebench.yaml."""
    overrides: Mapping[str, JsonValue] = Field(default_factory=dict)
    """Laid over the file: {"model": {"model_kwargs": {"temperature": 0.5}}, "agent": {"step_limit": 50}}."""
    model_timeout_s: float = Field(default=1800.0, gt=0)
    """Limit of one model call, its waiting in the gateway included, seconds."""


class Settings:
    """What a YAML file says, as far as it is not for the gateway or the sandbox provider to say."""

    def __init__(self, config: MinisweConfig) -> None:
        """Raises ConfigError."""
        try:
            whole = recursive_merge(get_config_from_spec(config.config_file), dict(config.overrides))
            self.whole: JsonValue = whole
            self.agent, self.model, self.environment = (
                dict(whole.get(part) or {}) for part in ("agent", "model", "environment")
            )
            name = self.agent.pop("agent_class", "default")
            # Nobody is there to talk to the interactive one.
            self.agent_class: Any = get_agent_class("default" if name == "interactive" else name)
        except (OSError, ValueError, TypeError, AttributeError, yaml.YAMLError) as error:
            missing = isinstance(error, FileNotFoundError)
            why = "is neither a file nor one that it ships" if missing else f"is of no use: {error}"
            raise ConfigError(f"mini-swe-agent's config {config.config_file!r} {why}", hint=_NAMES) from error
        self.model_class = TextModel if self._in_text() else ToolModel
        self.agent["output_path"] = None  # it would be written on this machine, at each step
        asked = self.model.get("model_kwargs") or {}
        self.model["model_kwargs"] = {name: asked[name] for name in asked if name not in _NOT_SENT}

    def _in_text(self) -> bool:
        """Commands travel in the answer's text."""
        protocol, prompt = str(self.model.pop("model_class", "")), str(self.agent.get("system_template", ""))
        return "textbased" in protocol or "action_regex" in self.model or "```mswea_bash_command" in prompt
