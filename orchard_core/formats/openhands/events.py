"""Events of one conversation as chat messages: what each event says to the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from orchard_core.formats.conversation import Fields
from orchard_core.formats.text import a_list, a_text, an_object

_ERROR = "[An error occurred during execution.]\n"
"""What OpenHands puts before a failed tool's words."""


@dataclass(slots=True, kw_only=True)
class Told:
    """A conversation as its events tell it."""

    messages: list[Fields] = field(default_factory=list)
    """In order; an answer with several calls is one message."""
    tools: list[Fields] = field(default_factory=list)
    """Names and descriptions; the log has no schemas of their parameters."""
    condensed: int = 0
    """How often the agent forgot a part of it; the messages are the whole of it all the same."""


def told(events: Sequence[Fields]) -> Told:
    """Events in order. Raises Fault, whose field begins with the event's place."""
    made = Told()
    response: Any = None
    for place, event in enumerate(_branch(events)):
        where = f"events[{place}]"
        kind = a_text(event.get("kind"), f"{where}.kind")
        if kind == "ActionEvent":
            response = _action(made, event, response, where)
            continue
        response = None
        if kind == "SystemPromptEvent":
            _system(made, event, where)
        elif kind == "MessageEvent":
            made.messages.append(_message(event, where))
        elif kind in ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation"):
            made.messages.append(_observation(event, kind, where))
        elif kind == "Condensation":
            made.condensed += 1
    return made


def _branch(events: Sequence[Fields]) -> Sequence[Fields]:
    """The events that lead to the last one, where the log has branches; else all."""
    parents = [event.get("parent_id") for event in events if event.get("parent_id") is not None]
    if len(set(map(str, parents))) == len(parents):
        return events
    by_id = {str(event.get("id")): event for event in events}
    path: list[Fields] = []
    current: Fields | None = events[-1]
    while current is not None and len(path) <= len(events):
        path.append(current)
        current = by_id.get(str(current.get("parent_id")))
    return path[::-1]


def _system(made: Told, event: Fields, where: str) -> None:
    prompts = [event.get("system_prompt"), event.get("dynamic_context")]
    made.messages.append({"role": "system", "content": _texts([one for one in prompts if one], where)})
    for tool in a_list(event.get("tools", []), f"{where}.tools"):
        held = an_object(tool, f"{where}.tools")
        name = held.get("name") or held.get("title") or held.get("kind")
        function = {"name": str(name), "description": str(held.get("description", ""))}
        made.tools.append({"type": "function", "function": function})


def _message(event: Fields, where: str) -> Fields:
    said = an_object(event.get("llm_message"), f"{where}.llm_message")
    role = a_text(said.get("role"), f"{where}.llm_message.role")
    parts = [
        *a_list(said.get("content", []), f"{where}.llm_message.content"),
        *event.get("extended_content", []),
    ]
    message: Fields = {"role": role, "content": _texts(parts, where)}
    if said.get("reasoning_content"):
        message["reasoning_content"] = a_text(
            said["reasoning_content"], f"{where}.llm_message.reasoning_content"
        )
    return message


def _action(made: Told, event: Fields, response: Any, where: str) -> Any:
    """Add a call to the answer it is part of; gives the answer's id."""
    held = an_object(event.get("tool_call"), f"{where}.tool_call")
    call = {
        "id": a_text(held.get("id"), f"{where}.tool_call.id"),
        "type": "function",
        "function": {
            "name": a_text(held.get("name"), f"{where}.tool_call.name"),
            "arguments": a_text(held.get("arguments"), f"{where}.tool_call.arguments"),
        },
    }
    if response is not None and event.get("llm_response_id") == response:
        made.messages[-1]["tool_calls"].append(call)
        return response
    thought = a_list(event.get("thought", []), f"{where}.thought")
    message: Fields = {"role": "assistant", "content": _texts(thought, where), "tool_calls": [call]}
    if event.get("reasoning_content"):
        message["reasoning_content"] = a_text(event["reasoning_content"], f"{where}.reasoning_content")
    made.messages.append(message)
    return event.get("llm_response_id")


def _observation(event: Fields, kind: str, where: str) -> Fields:
    if kind == "AgentErrorEvent":
        content: Any = a_text(event.get("error"), f"{where}.error")
    elif kind == "UserRejectObservation":
        content = f"Action rejected: {a_text(event.get('rejection_reason'), f'{where}.rejection_reason')}"
    else:
        content = _heard(event, where)
    call = a_text(event.get("tool_call_id"), f"{where}.tool_call_id")
    return {"role": "tool", "content": content, "tool_call_id": call, "name": str(event.get("tool_name", ""))}


def _heard(event: Fields, where: str) -> Any:
    """What the model was shown: a terminal's words have the place and the exit code behind them."""
    seen = an_object(event.get("observation"), f"{where}.observation")
    parts = [
        an_object(part, where) for part in a_list(seen.get("content", []), f"{where}.observation.content")
    ]
    metadata = seen.get("metadata")
    if seen.get("kind") == "TerminalObservation" and isinstance(metadata, dict):
        words = "".join(str(part.get("text", "")) for part in parts)
        parts = [{"type": "text", "text": f"{metadata.get('prefix', '')}{words}{_behind(metadata)}"}]
    before = [{"type": "text", "text": _ERROR}] if seen.get("is_error") else []
    return _texts([*before, *parts, *event.get("extended_content", [])], where)


def _behind(metadata: Fields) -> str:
    text = str(metadata.get("suffix", ""))
    if metadata.get("working_dir"):
        text += f"\n[Current working directory: {metadata['working_dir']}]"
    if metadata.get("py_interpreter_path"):
        text += f"\n[Python interpreter: {metadata['py_interpreter_path']}]"
    if metadata.get("exit_code", -1) != -1:
        text += f"\n[Command finished with exit code {metadata['exit_code']}]"
    return text


def _texts(parts: Sequence[Any], where: str) -> Any:
    """One text where there is no picture, as OpenHands sends it, else parts."""
    held = [an_object(part, where) for part in parts]
    if not any("image_urls" in part for part in held):
        return "\n".join(str(part.get("text", "")) for part in held)
    listed: list[Fields] = []
    for part in held:
        if "image_urls" in part:
            urls = a_list(part["image_urls"], where)
            listed += [{"type": "image_url", "image_url": {"url": a_text(url, where)}} for url in urls]
        else:
            listed.append({"type": "text", "text": str(part.get("text", ""))})
    return listed
