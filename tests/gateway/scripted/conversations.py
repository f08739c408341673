"""Talks to a scripted upstream as a harness would, without a harness."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from orchard_core import Dialect, Model, SessionContext, Solution, SolutionStep, UpstreamRequest

TWO_STEPS = Solution(
    steps=(
        SolutionStep(command="mkdir out", thought="The folder comes first."),
        SolutionStep(command="echo 7 > out/n", thought="Now the number."),
    ),
    answer="7",
)


def tool(name: str, required: Sequence[str] = (), **properties: Any) -> dict[str, Any]:
    """A function as a chat request offers it."""
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": "", "parameters": parameters}}


STRING = {"type": "string"}
BASH = tool("bash", ["command"], command=STRING)
SUBMIT = tool("submit", answer=STRING)


def context(solution: Solution | None = TWO_STEPS, seed: int = 0) -> SessionContext:
    """A session whose task has this solution."""
    return SessionContext(rollout="r", solution=lambda: solution, seed=seed)


def request(
    messages: Sequence[dict[str, Any]], *, tools: Sequence[dict[str, Any]] = (), index: int = 0, **fields: Any
) -> UpstreamRequest:
    """A chat completion request."""
    body = {"model": "m", "messages": list(messages), **({"tools": list(tools)} if tools else {}), **fields}
    return UpstreamRequest(dialect=Dialect.CHAT, body=json.dumps(body).encode(), index=index, timeout_s=5)


async def say(
    model: Model, messages: Sequence[dict[str, Any]], *, within: SessionContext | None = None, **fields: Any
) -> dict[str, Any]:
    """The assistant message that answers."""
    reply = await model.upstream(within or context()).complete(request(messages, **fields))
    message: dict[str, Any] = json.loads(reply.body)["choices"][0]["message"]
    return message


async def play(
    model: Model,
    prompt: str,
    *,
    tools: Sequence[dict[str, Any]] = (),
    within: SessionContext | None = None,
    turns: int = 12,
) -> list[dict[str, Any]]:
    """The model's answers until it ends the episode or stops acting."""
    session = within or context()
    messages: list[dict[str, Any]] = [{"role": "system", "content": prompt}]
    answers: list[dict[str, Any]] = []
    for index in range(turns):
        message = await say(model, messages, within=session, tools=tools, index=index)
        answers.append(message)
        messages.append(message)
        calls = message.get("tool_calls", [])
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in calls]
        if not calls:
            messages.append({"role": "user", "content": "ok"})
        if ends(message):
            return answers
    return answers


def ends(message: dict[str, Any]) -> bool:
    """The message submits, by tool or in words."""
    names = {name for name, _ in calls(message)}
    text = message.get("content") or ""
    acts = bool(message.get("tool_calls")) or "```" in text or "<tool_call>" in text
    return (
        bool(names & {"submit", "finish"})
        or "COMPLETE_TASK" in str(message)
        or '"submit"' in text
        or not acts
    )


def calls(message: dict[str, Any]) -> list[tuple[str, Any]]:
    """(name, arguments) of native calls; arguments that are not JSON stay text."""
    return [
        (call["function"]["name"], _parsed(call["function"]["arguments"]))
        for call in message.get("tool_calls", [])
    ]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
