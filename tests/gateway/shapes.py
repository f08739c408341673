"""Requests in the shapes that real harnesses send them, by messages alone or with token ids."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from orchard_core import CallTimings, Dialect, Message, MessageRefs, ModelCall, TokenRefs, Trajectory
from orchard_core.gateway.conversation import content_hash

Said = dict[str, Any]


def system(text: str) -> Said:
    return {"role": "system", "content": text}


def user(text: str) -> Said:
    return {"role": "user", "content": text}


def tool(call: str, text: str) -> Said:
    return {"role": "tool", "tool_call_id": call, "content": text}


def answer(text: str | None, *calls: tuple[str, str, Said]) -> Said:
    """An answer; calls are (id, name, arguments)."""
    made = [
        {"id": key, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for key, name, arguments in calls
    ]
    said: Said = {"role": "assistant", "content": text}
    return {**said, "tool_calls": made} if made else said


def bash(key: str, command: str) -> Said:
    return answer(None, (key, "bash", {"command": command}))


@dataclass
class Recording:
    """Calls as a gateway records them."""

    tokens: bool
    """The upstream tells ids: a character each, with an end after every message."""
    calls: list[ModelCall] = field(default_factory=list)
    messages: dict[str, Message] = field(default_factory=dict)

    def call(self, request: Sequence[Said], said: Said, *, tools: bool = True) -> Said:
        """Record one call, and give back its answer."""
        prompt = [token for message in request for token in self._spelled(message)]
        spoken = self._spelled(said) if self.tokens else None
        self.calls.append(
            ModelCall(
                index=len(self.calls),
                dialect=Dialect.CHAT,
                messages=MessageRefs(added=tuple(self._keep(message) for message in request)),
                tools="tools" if tools else None,
                response=self._keep(said),
                finish_reason="tool_calls" if said.get("tool_calls") else "stop",
                prompt_tokens=TokenRefs(added=tuple(prompt)) if self.tokens else None,
                completion_tokens=None if spoken is None else tuple(spoken),
                logprobs=None if spoken is None else (-0.5,) * len(spoken),
                timings=CallTimings(started_at=0.0),
            )
        )
        return said

    def trajectory(self) -> Trajectory:
        return Trajectory(calls=tuple(self.calls), messages=self.messages, blobs={"tools": "[]"})

    def _keep(self, message: Said) -> str:
        raw = json.dumps(message)
        self.messages[content_hash(raw)] = Message(role=message["role"], raw=raw)
        return content_hash(raw)

    def _spelled(self, message: Said) -> list[int]:
        return [*(ord(letter) for letter in json.dumps(message)), 0]


def opencode(recording: Recording) -> None:
    """Its first request asks for a title; the conversation follows."""
    recording.call(
        [system("You are a title generator. Output only a title."), user("Generate a title:\nFix it")],
        answer("Fixing it"),
        tools=False,
    )
    talk = [system("You are opencode."), user("Fix it")]
    talk += [recording.call(talk, bash("a", "ls")), tool("a", "main.py")]
    recording.call(talk, answer("Fixed."))


def claude_code(recording: Recording) -> None:
    """A small model names the topic first, and warms up with one word; a Task spawns a subagent; at last the
    conversation is summarised and goes on from the summary."""
    recording.call([system("Analyze if this message indicates a new topic."), user("Fix it")], answer("{}"),
                   tools=False)  # fmt: skip
    recording.call([user("quota")], answer("#"), tools=False)
    talk = [system("You are Claude Code."), user("Fix it")]
    asked = answer(None, ("t", "Task", {"description": "look", "prompt": "Find every caller of main()."}))
    talk += [recording.call(talk, asked)]
    below = [system("You are an agent for Claude Code."), user("Find every caller of main().")]
    below += [recording.call(below, bash("b", "grep -r main")), tool("b", "a.py")]
    found = recording.call(below, answer("Only a.py calls it."))
    talk += [tool("t", found["content"])]
    talk += [recording.call(talk, bash("c", "sed -i s/x/y/ a.py")), tool("c", "")]
    summary = recording.call(
        [*talk, user("Your task is to create a detailed summary of the conversation so far.")],
        answer("1. Primary request: fix it. 2. Files: a.py, which alone calls main(). 3. Pending: tests."),
    )["content"]
    again = [
        system("You are Claude Code."),
        user(f"This session is being continued from a previous conversation.\n{summary}"),
    ]
    again += [recording.call(again, bash("d", "pytest")), tool("d", "ok")]
    recording.call(again, answer("Fixed."))


def zeroclaw(recording: Recording) -> None:
    """Whole turns leave at the front once the budget is spent; a spawned subagent's turns never enter."""
    start = [system("You are ZeroClaw."), user("Fix it")]
    first = [recording.call(start, bash("a", "ls")), tool("a", "x" * 40)]
    spawn = answer(None, ("s", "spawn_subagent", {"task": "Count the lines of x.txt."}))
    second = [recording.call([*start, *first], spawn)]
    below = [system("You are ZeroClaw."), user("Count the lines of x.txt.")]
    recording.call(below, answer("There are 3."))
    second += [tool("s", "There are 3.")]
    third = [recording.call([*start, *first, *second], bash("b", "cat x.txt")), tool("b", "y" * 40)]
    trimmed = [start[0], *second, *third]
    trimmed += [recording.call(trimmed, bash("c", "true")), tool("c", "")]
    recording.call(trimmed, answer("Fixed."))


def miniswe(recording: Recording) -> None:
    """An answer that it cannot understand is left out of the next request."""
    talk = [system("You are a helpful assistant."), user("Fix it")]
    recording.call(talk, answer("I forgot to call anything."))
    talk += [user("Tool call error: no tool calls found.")]
    talk += [recording.call(talk, bash("a", "ls")), tool("a", "main.py")]
    recording.call(talk, answer("I forgot again."))
    talk += [user("Tool call error: none found, still.")]
    recording.call(talk, bash("b", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"))
