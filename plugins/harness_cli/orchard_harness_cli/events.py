"""What each CLI's JSON events tell."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from orchard_core import StopReason, Told, json_at, json_words

Event = Mapping[str, JsonValue]


def codex(event: Event, told: Told) -> None:
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


def claude(event: Event, told: Told) -> None:
    """An answer comes in pieces of one id; those of subagents and those that tell of an error are no turns of
    its own."""
    synthetic = json_at(event, "message", "model") == "<synthetic>"
    match event.get("type"), event.get("subtype"):
        case "assistant", _ if event.get("parent_tool_use_id") is None and not synthetic:
            told.ids.add(json_words(event, "message", "id"))
            told.turns = len(told.ids)
        case "result", "error_max_turns":
            told.stop = StopReason.TURN_LIMIT
        case "result", _ if event.get("is_error"):
            told.error = json_words(event, "result") or json_words(event, "subtype")
        case "result", _:
            told.answer, told.finished = json_words(event, "result"), True


def opencode(event: Event, told: Told) -> None:
    """A step is a model's answer and what came of it."""
    match event.get("type"):
        case "step_start":
            told.answer = None
        case "text":
            told.answer = (told.answer or "") + json_words(event, "part", "text")
        case "step_finish":
            told.turns, told.finished = told.turns + 1, json_at(event, "part", "reason") != "tool-calls"
        case "error":
            told.error = json_words(event, "error", "data", "message") or str(json_at(event, "error", "name"))


def pi(event: Event, told: Told) -> None:
    """An answer that failed carries its error."""
    told.finished = told.finished or event.get("type") == "agent_end"
    if event.get("type") == "message_end" and json_at(event, "message", "role") == "assistant":
        told.error = json_words(event, "message", "errorMessage")
        if not told.error:
            told.turns, told.answer = told.turns + 1, json_words(event, "message", "content")


def kimi(event: Event, told: Told) -> None:
    """Messages in the shape of chat completions, and at the end how to resume."""
    told.finished = told.finished or event.get("type") == "session.resume_hint"
    if event.get("role") == "assistant":
        told.turns, told.answer = told.turns + 1, json_words(event, "content")
