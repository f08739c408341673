"""The table of CLIs: where each is from, how it is started, and how its events are read."""

from __future__ import annotations

import json
from importlib import import_module

from orchard_core import (
    ConfigError,
    FileInput,
    InsideProgram,
    StopReason,
    Told,
    ToolUse,
    json_at,
    json_words,
)
from orchard_harness_cli.adapter import Adapter, Json, Start


def _file(path: str, content: object) -> FileInput:
    """For its owner only: the session's key may stand in it."""
    return FileInput(path=path, content=json.dumps(content, indent=1).encode(), mode=0o600)


def _codex(start: Start) -> InsideProgram:
    provider = {
        "name": "Orchard", "base_url": start.model.base_url, "env_key": "ORCHARD_KEY",
        "wire_api": "responses", "request_max_retries": 0, "stream_max_retries": 0,
    }  # fmt: skip
    settings: dict[str, object] = {
        "model": start.model.model,
        "model_provider": "orchard",
        "model_context_window": start.config.context_window,
        "check_for_update_on_startup": False,
        "analytics.enabled": False,
        **{f"model_providers.orchard.{name}": value for name, value in provider.items()},
    }
    if start.tools:
        task = {
            "url": start.model.tools_url,
            "bearer_token_env_var": "ORCHARD_KEY",
            "tool_timeout_sec": 86400,
        }
        settings |= {f"mcp_servers.task.{name}": value for name, value in task.items()}
    given = [word for name, value in settings.items() for word in ("-c", f"{name}={json.dumps(value)}")]
    free = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
    # Its helpers must not lie below the directory of temporary files.
    env = {"ORCHARD_KEY": start.model.api_key, "TMPDIR": f"{start.home}/tmp"}  # noqa: S108 - the sandbox's
    files = (FileInput(path="tmp/.keep", content=b""), FileInput(path=".codex/.keep", content=b""))
    return InsideProgram(argv=("exec", "--json", *free, *given, "-"), env=env, files=files)


def _codex_event(event: Json, told: Told) -> None:
    """It does not tell its model calls apart: each thing it did counts as a turn, and so does its answer."""
    match event.get("type"), json_at(event, "item", "type"):
        case "item.completed", "agent_message":
            told.answer = json_words(event, "item", "text")
        case "item.completed", "command_execution" | "file_change" | "mcp_tool_call" | "web_search":
            told.turns += 1
        case "turn.completed", _:
            told.turns, told.finished = told.turns + 1, True
        case "turn.failed", _:
            told.error = json_words(event, "error", "message") or "the turn failed"


def _claude(start: Start) -> InsideProgram:
    free = ("--verbose", "--dangerously-skip-permissions")
    turns = ("--max-turns", str(start.limits.turns)) if start.limits.turns else ()
    mcp = ("--mcp-config", f"{start.home}/mcp.json", "--strict-mcp-config") if start.tools else ()
    task = {"type": "http", "url": start.model.tools_url, "headers": start.bearer}
    names = ("ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL")
    off = (
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_AUTOUPDATER",
        "DISABLE_TELEMETRY",
        "IS_SANDBOX",
    )
    env = {
        "ANTHROPIC_BASE_URL": start.model.root_url,
        "ANTHROPIC_API_KEY": start.model.api_key,
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "IS_SANDBOX": "1",
        **dict.fromkeys(names, start.model.model),
        **dict.fromkeys(off, "1"),
    }
    files = (_file("mcp.json", {"mcpServers": {"task": task}}),)
    return InsideProgram(
        argv=("-p", "--output-format", "stream-json", *free, *turns, *mcp), env=env, files=files
    )


def _claude_event(event: Json, told: Told) -> None:
    match event.get("type"), event.get("subtype"):
        case "assistant", _ if event.get("parent_tool_use_id") is None:
            told.ids.add(json_words(event, "message", "id"))
            told.turns = len(told.ids)
        case "result", "error_max_turns":
            told.stop = StopReason.TURN_LIMIT
        case "result", _ if event.get("is_error"):
            told.error = json_words(event, "result") or json_words(event, "subtype")
        case "result", _:
            told.answer, told.finished = json_words(event, "result"), True


def _opencode(start: Start) -> InsideProgram:
    limit = {"context": start.config.context_window, "output": start.config.max_output}
    model = {"tool_call": True, "attachment": True, "limit": limit}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": start.model.base_url, "apiKey": start.model.api_key},
        "models": {start.model.model: model},
    }
    task = {"type": "remote", "url": start.model.tools_url, "headers": start.bearer, "oauth": False}
    config = {
        "autoupdate": False,
        "share": "disabled",
        "permission": "allow",
        "provider": {"orchard": provider},
        "mcp": {"task": task} if start.tools else {},
    }
    off = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD")
    return InsideProgram(
        argv=("run", "--format", "json", "--model", f"orchard/{start.model.model}"),
        env={**{f"OPENCODE_DISABLE_{name}": "1" for name in off}, "BUN_TMPDIR": start.home},
        files=(_file(".config/opencode/opencode.json", config),),
    )


def _opencode_event(event: Json, told: Told) -> None:
    match event.get("type"):
        case "step_start":
            told.answer = None
        case "text":
            told.answer = (told.answer or "") + json_words(event, "part", "text")
        case "step_finish":
            told.turns += 1
            told.finished = json_at(event, "part", "reason") != "tool-calls"
        case "error":
            data, name = json_words(event, "error", "data", "message"), json_words(event, "error", "name")
            told.error = data or name or "an error"


def _pi(start: Start) -> InsideProgram:
    model = {
        "id": start.model.model,
        "contextWindow": start.config.context_window,
        "maxTokens": start.config.max_output,
        "input": ["text", "image"],
    }
    provider = {
        "api": "openai-completions", "baseUrl": start.model.base_url, "apiKey": "ORCHARD_KEY",
        "models": [model],
    }  # fmt: skip
    return InsideProgram(
        argv=("--provider", "orchard", "--model", start.model.model, "--mode", "json", "--no-session", "-p"),
        env={"ORCHARD_KEY": start.model.api_key, "PI_OFFLINE": "1", "PI_TELEMETRY": "0"},
        files=(
            _file(".pi/agent/models.json", {"providers": {"orchard": provider}}),
            _file(".pi/agent/settings.json", {"retry": {"enabled": False}}),
        ),
    )


def _pi_event(event: Json, told: Told) -> None:
    told.finished = told.finished or event.get("type") == "agent_end"
    if event.get("type") == "message_end" and json_at(event, "message", "role") == "assistant":
        told.error = json_words(event, "message", "errorMessage")
        if not told.error:
            told.turns, told.answer = told.turns + 1, json_words(event, "message", "content")


_TABLE = (
    Adapter(
        name="codex", packages=("@openai/codex@0.171.0",),
        node="node", program="node_modules/@openai/codex/bin/codex.js",
        start=_codex, read=_codex_event,
    ),
    Adapter(
        name="claude", packages=("@anthropic-ai/claude-code@2.1.197",),
        program="node_modules/@anthropic-ai/claude-code-linux-{arch}/claude",
        start=_claude, read=_claude_event, turn_limit=True,
    ),
    Adapter(
        name="opencode", packages=("opencode-ai@1.18.33",),
        program="node_modules/opencode-linux-{arch}*/bin/opencode",
        start=_opencode, read=_opencode_event,
    ),
    Adapter(
        name="pi", packages=("@mariozechner/pi-coding-agent@0.73.1",),
        node="node", program="node_modules/@mariozechner/pi-coding-agent/dist/cli.js",
        start=_pi, read=_pi_event, tools=ToolUse.CLI,
    ),
)  # fmt: skip
ADAPTERS = {adapter.name: adapter for adapter in _TABLE}


def find_adapter(name: str) -> Adapter:
    """One of the table, or `package.module:ATTRIBUTE`. Raises ConfigError."""
    module, colon, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute) if colon else ADAPTERS.get(name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"the adapter {name} cannot be had: {error}", hint="install its package") from error
    if not isinstance(found, Adapter):
        known = f"{', '.join(ADAPTERS)}, or package.module:ATTRIBUTE of an Adapter"
        raise ConfigError(f"there is no CLI {name!r}", hint=f"write cli: and one of {known}")
    return found
