"""A small event log in the shape that OpenHands writes, of our own making."""

from __future__ import annotations

from orchard_core.formats.conversation import Fields


def _event(number: int, kind: str, source: str, **members: object) -> Fields:
    parent = {"parent_id": f"event-{number - 1}"} if number else {}
    head = {"id": f"event-{number}", "timestamp": f"2026-01-01T00:00:0{number}.000000", "source": source}
    return {**head, **parent, **members, "kind": kind}


def _text(text: str) -> Fields:
    return {"cache_prompt": False, "type": "text", "text": text}


def _action(number: int, call: str, command: str, response: str, thought: str = "") -> Fields:
    return _event(
        number,
        "ActionEvent",
        "agent",
        thought=[_text(thought)] if thought else [],
        thinking_blocks=[],
        tool_name="terminal",
        tool_call_id=call,
        tool_call={"id": call, "name": "terminal", "arguments": command, "origin": "completion"},
        llm_response_id=response,
        security_risk="UNKNOWN",
    )


def _seen(number: int, call: str, text: str, exit_code: int = 0) -> Fields:
    metadata = {"exit_code": exit_code, "working_dir": "/workspace", "prefix": "", "suffix": ""}
    observation = {
        "content": [_text(text)], "is_error": False, "metadata": metadata, "kind": "TerminalObservation",
    }  # fmt: skip
    return _event(
        number,
        "ObservationEvent",
        "environment",
        tool_name="terminal",
        tool_call_id=call,
        observation=observation,
        extended_content=[],
    )


EVENTS: tuple[Fields, ...] = (
    _event(
        0,
        "SystemPromptEvent",
        "agent",
        system_prompt=_text("You are an agent."),
        tools=[{"name": "terminal", "description": "Run a command."}],
    ),
    _event(
        1,
        "MessageEvent",
        "user",
        llm_message={"role": "user", "content": [_text("List the files.")]},
        extended_content=[],
    ),
    _action(2, "call-1", '{"command": "ls"}', "response-1", "I look, twice."),
    _action(3, "call-2", '{"command":"pwd"}', "response-1"),
    _seen(4, "call-1", "a.txt"),
    _seen(5, "call-2", "/workspace"),
    _action(6, "call-3", '{"command": "false"}', "response-2"),
    _seen(7, "call-3", "", exit_code=1),
    _event(
        8,
        "MessageEvent",
        "agent",
        llm_response_id="response-3",
        extended_content=[],
        llm_message={"role": "assistant", "content": [_text("There is a.txt.")]},
    ),
)
"""A conversation with two calls at once, a command that fails, and an end."""
