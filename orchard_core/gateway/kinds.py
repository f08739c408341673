"""What a thread of a rollout is, from what its beginning shares with the calls before it.

Nothing is guessed from when a call came: a kind is told only where text or messages of another call prove it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from orchard_core.gateway.echo import same_answer
from orchard_core.gateway.json_text import JsonFault, loads
from orchard_core.gateway.threads import Node
from orchard_core.types.model import Message
from orchard_core.types.sample import SampleLabel
from orchard_core.types.sample_report import ThreadKind
from orchard_core.types.trajectory import Trajectory

_TASK, _SUMMARY = 12, 40
"""Characters below which a text that stands in another proves nothing."""


def kind_of(
    trajectory: Trajectory, start: Node, label: SampleLabel, earlier: Sequence[Node]
) -> tuple[ThreadKind, Node | None]:
    """The kind of the thread that starts here, and the call that tells it; `earlier` are all calls before."""
    if label is SampleLabel.MAIN:
        return ThreadKind.MAIN, None
    if label is SampleLabel.SIDE:
        return ThreadKind.SIDE, None
    if start.parent is not None:
        trimmed = _trimmed_from(trajectory, start, earlier)
        return (ThreadKind.BRANCH, start.parent) if trimmed is None else (ThreadKind.TRIMMED, trimmed)
    for kind, tells in (
        (ThreadKind.TRIMMED, _trimmed_from),  # first, for it costs least and may happen at every call
        (ThreadKind.SUBAGENT, asked_by),
        (ThreadKind.COMPACTED, _compacted_from),
    ):
        if (other := tells(trajectory, start, earlier)) is not None:
            return kind, other
    return ThreadKind.FORK, None


def asked_by(trajectory: Trajectory, start: Node, earlier: Sequence[Node]) -> Node | None:
    """The latest call with a tool call whose arguments hold the first thing the thread was told."""
    first = next((said for said in _messages(trajectory, start) if said.role == "user"), None)
    task = "" if first is None else text_of(first).strip()
    if len(task) < _TASK:
        return None
    return next((node for node in reversed(earlier) if task in _arguments(trajectory, node)), None)


def _trimmed_from(trajectory: Trajectory, start: Node, earlier: Sequence[Node]) -> Node | None:
    """The latest call with messages of this beginning further back, its answer being the last, and others
    before them."""
    for node in reversed(earlier):
        shared = common(start.messages, node.messages)
        if shared == len(start.messages) or shared == len(node.messages):
            continue
        first = start.messages[shared]
        if first in node.messages[shared + 1 :] or _is_answer(trajectory, node, first):
            return node
    return None


def _is_answer(trajectory: Trajectory, node: Node, message: str) -> bool:
    answer = trajectory.messages.get(node.call.response or "")
    sent = trajectory.messages[message]
    return answer is not None and sent.role == "assistant" and same_answer(answer.raw, sent.raw)


def _compacted_from(trajectory: Trajectory, start: Node, earlier: Sequence[Node]) -> Node | None:
    """The latest call whose answer is retold in the beginning by somebody other than the model."""
    told = [text_of(said) for said in _messages(trajectory, start) if said.role != "assistant"]
    for node in reversed(earlier):
        answer = trajectory.messages.get(node.call.response or "")
        summary = "" if answer is None else text_of(answer).strip()
        if len(summary) >= _SUMMARY and any(summary in text for text in told):
            return node
    return None


def common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many messages two requests share at their front."""
    limit = min(len(one), len(other))
    return next((at for at in range(limit) if one[at] != other[at]), limit)


def text_of(message: Message) -> str:
    """What a message says in words."""
    content = _fields(message).get("content")
    parts = content if isinstance(content, list) else [content]
    return "\n".join(
        text
        for part in parts
        if isinstance(text := part.get("text") if isinstance(part, dict) else part, str)
    )


def _messages(trajectory: Trajectory, node: Node) -> Iterator[Message]:
    return (trajectory.messages[key] for key in node.messages)


def _arguments(trajectory: Trajectory, node: Node) -> str:
    """Every text in the arguments of an answer's tool calls, a line each."""
    answer = trajectory.messages.get(node.call.response or "")
    calls = None
    if answer is not None and '"tool_calls"' in answer.raw:  # parsing each answer again and again costs more
        calls = _fields(answer).get("tool_calls")
    found: list[str] = []
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        arguments = function.get("arguments") if isinstance(function, dict) else None
        if isinstance(arguments, str):
            found += _texts(_parsed(arguments))
    return "\n".join(found)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _fields(message: Message) -> dict[str, Any]:
    value = _parsed(message.raw)
    return value if isinstance(value, dict) else {}


def _parsed(text: str) -> object:
    try:
        return loads(text)
    except JsonFault:
        return None
