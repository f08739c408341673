"""What of a rollout is compared: what the agent did.

Two rollouts of one task share its words and the harness's prompt whatever the agent does, and two that do the
same say it in other words. So a near-duplicate trajectory is one of the same task, under the same harness,
with nearly the same calls; under another harness the same calls are another lesson.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from orchard_core.datasets.similar.minhash import SHORT_SHINGLE, near_signature


def action_text(messages: Iterable[Mapping[str, object]]) -> str:
    """The assistant's calls in order, a line each: the tool's name and its arguments as they were sampled.
    A message that calls nothing stands with its words, as where a harness takes actions from text.

    `messages` are parsed chat messages in OpenAI's shape; what has another shape is passed over.
    """
    lines = []
    for message in messages:
        if not isinstance(message, Mapping) or message.get("role") != "assistant":
            continue
        calls = message.get("tool_calls")
        lines += [_call(call) for call in calls] if isinstance(calls, list) and calls else [_words(message)]
    return "\n".join(line for line in lines if line)


def action_signature(messages: Iterable[Mapping[str, object]]) -> bytes:
    """The signature by which rollouts of one task are compared, over runs of three words of their actions."""
    return near_signature(action_text(messages), shingle=SHORT_SHINGLE)


def _call(call: object) -> str:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return ""
    return f"{function.get('name')} {function.get('arguments')}"


def _words(message: Mapping[str, object]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        return " ".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""
