"""Output items and the response around them, as the API shapes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from orchard_core.gateway.faults import Fault, openai_body
from orchard_core.gateway.json_text import dumps, loads
from orchard_core.gateway.responses.carried import Carried, write
from orchard_core.gateway.responses.tools import Tool, custom_input
from orchard_core.gateway.sse import framed
from orchard_core.gateway.usage import chat_usage

Item = dict[str, Any]


def new_id(kind: str) -> str:
    """Ids are random: clients keep items by id, over all answers of a session."""
    return f"{kind}_{uuid4().hex}"


def reasoning(key: str, text: str, carried: Carried) -> Item:
    """Reasoning, as a summary: that is what clients show and send back."""
    summary = [{"type": "summary_text", "text": text}] if text else []
    return {"id": key, "type": "reasoning", "summary": summary, "encrypted_content": write(carried)}


def part(text: str) -> Item:
    """Text within a message."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def refusal_part(text: str) -> Item:
    """A refusal within a message."""
    return {"type": "refusal", "refusal": text}


def message(key: str, parts: Sequence[Item], status: str = "completed") -> Item:
    """The model's words."""
    return {"id": key, "type": "message", "status": status, "role": "assistant", "content": list(parts)}


def call(key: str, call_id: str, tool: Tool, arguments: str, status: str = "completed") -> Item:
    """A call, of a custom tool where the tool is one."""
    item: Item = {"id": key, "type": "function_call", "status": status, "call_id": call_id, "name": tool.name}
    if tool.namespace is not None:
        item["namespace"] = tool.namespace
    if tool.custom:
        return {**item, "type": "custom_tool_call", "input": custom_input(arguments) if arguments else ""}
    return {**item, "arguments": arguments}


def tool_of(name: str, notes: Mapping[str, object]) -> Tool:
    """What the harness knows a function as."""
    known = notes.get("tools")
    found = known.get(name) if isinstance(known, dict) else None
    return found if isinstance(found, Tool) else Tool(name=name)


def response(head: Mapping[str, Any], output: Sequence[Item], **state: object) -> Item:
    """The response object; `head` is the chat completion or a chunk of it."""
    created = head.get("created")
    return {
        "id": head["id"],
        "object": "response",
        "created_at": created if isinstance(created, int) else 0,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "model": head.get("model"),
        "output": list(output),
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "store": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
        **state,
    }


def state(finish_reason: object, usage: object) -> dict[str, object]:
    """How an answer ended."""
    ended: dict[str, object] = {"status": "completed", "usage": report(usage)}
    why = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(str(finish_reason))
    if why is not None:
        ended |= {"status": "incomplete", "incomplete_details": {"reason": why}}
    return ended


def failed(fault: Fault, head: Mapping[str, Any], number: int) -> bytes:
    """The event, the stream's `number`th, that ends a response with an error."""
    error = loads(openai_body(fault))["error"]
    said = {"code": error.get("code") or fault.code, "message": error.get("message") or fault.message}
    failed = response(head, [], status="failed", error=said)
    event = {"type": "response.failed", "sequence_number": number, "response": failed}
    return framed(dumps(event), "response.failed")


def report(reported: object) -> dict[str, object] | None:
    """`usage` for that of a chat completion; None for none."""
    usage = chat_usage(reported)
    if usage is None or not isinstance(reported, dict):
        return None
    details = reported.get("completion_tokens_details")
    thought = details.get("reasoning_tokens") if isinstance(details, dict) else None
    prompt = usage.input + usage.cache_read + usage.cache_write
    return {
        "input_tokens": prompt,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": thought if isinstance(thought, int) else 0},
        "total_tokens": prompt + usage.output,
    }
