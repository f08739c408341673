"""ZeroClaw's one configuration file, made anew for each rollout."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from orchard_core import ModelEndpoint, Task, mcp_server
from orchard_harness_zeroclaw.config import ZeroClawConfig

AGENT = "orchard"
"""The alias of the one agent there is."""
Setting = str | int | float | bool | list[str] | dict[str, str] | None


def settings(config: ZeroClawConfig, model: ModelEndpoint, task: Task, *, tools: bool) -> str:
    """config.toml. `model` is the endpoint as seen from inside."""
    provider: Mapping[str, Setting] = {
        "uri": model.base_url, "api_key": model.api_key, "model": model.model,
        "wire_api": None if config.wire_api == "chat_completions" else config.wire_api,
        "temperature": config.temperature, "max_tokens": config.max_tokens,
    }  # fmt: skip
    risk: Mapping[str, Setting] = {
        "level": "full", "workspace_only": False, "allowed_commands": ["*"], "auto_approve": ["*"],
        "block_high_risk_commands": False, "require_approval_for_medium_risk": False,
        "excluded_tools": None if config.subagents else ["spawn_subagent", "delegate"],
        "sandbox_enabled": False,
    }  # fmt: skip
    runtime: Mapping[str, Setting] = {
        "agentic": True, "max_tool_iterations": config.max_tool_iterations,
        "max_context_tokens": config.context_tokens, "shell_timeout_secs": config.shell_timeout_s,
        "max_actions_per_hour": 4_294_967_295, "max_cost_per_day_cents": 4_294_967_295,
    }  # fmt: skip
    profiles: Mapping[str, Setting] = dict.fromkeys(("risk_profile", "runtime_profile"), AGENT)
    server = mcp_server(model)
    tables: dict[str, Mapping[str, Setting]] = {
        f"[providers.models.custom.{AGENT}]": provider,
        f"[risk_profiles.{AGENT}]": risk,
        f"[runtime_profiles.{AGENT}]": runtime,
        f"[agents.{AGENT}]": {"enabled": True, "model_provider": f"custom.{AGENT}", **profiles},
        f"[agents.{AGENT}.workspace]": {"path": task.workdir, "unrestricted_filesystem": True},
        "[mcp]": {"enabled": tools, "deferred_loading": False},
    }
    if tools:
        served: Mapping[str, Setting] = {
            "name": AGENT, "transport": "http", "url": server.url, "headers": dict(server.headers)
        }  # fmt: skip
        tables["[[mcp.servers]]"] = served
    return "\n".join(["schema_version = 3", *_lines(tables)]) + "\n"


def _lines(tables: Mapping[str, Mapping[str, Setting]]) -> Iterator[str]:
    for head, fields in tables.items():
        yield f"\n{head}"
        yield from (f"{name} = {_toml(value)}" for name, value in fields.items() if value is not None)


def _toml(value: Setting) -> str:
    """A value of JSON as TOML; they differ in tables, and in the delete character."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(name)} = {_toml(item)}" for name, item in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
