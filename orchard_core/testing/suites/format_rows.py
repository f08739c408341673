"""Rows that try a dataset format: what rollouts hold, and what is easily lost on the way through a file."""

from __future__ import annotations

import json
from typing import Any

from orchard_core.types.dataset import DatasetRow
from orchard_core.types.rollout import Attribution, Outcome

AWKWARD = (
    "",
    " leading and trailing ",
    "line\r\nbreaks\rof\nall\u2028kinds\u2029",
    "quotes \" ' ` and \\ backslashes \\n \\u0041",
    "\ufeffa byte order mark, a \x00 nul, \x1b[31mcolour\x1b[0m and \x7f",
    "日本語 العربية \U0001f600 e\u0301 \u200b\u00a0\u3000",
    "half a pair \ud83d and \udc00",
    '{"role": "assistant", "content": "not a message"}',
    "<|im_end|><tool_call></tool_call>",
)
"""Texts that a format must give back as they are, or refuse."""

ARGUMENTS = (
    '{"command": "ls -la"}',
    '{"command":"ls","n":1}',
    '{ "a" : 1.0, "b" : 1e2, "a" : 2 }',
    '{"n": 123456789012345678901234567890, "x": 0.1000000000000000055}',
    "{not json",
    '["a", "list"]',
    "",
)
"""Texts of call arguments as models write them."""

TOOL = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Run a command.",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string", "description": "It."}},
            "required": ["command"],
        },
    },
}


def row(number: int, messages: list[dict[str, Any]], **fields: Any) -> DatasetRow:
    """A row of these messages; every answer is trained on unless `mask` says otherwise."""
    given: dict[str, Any] = {
        "id": f"row-{number}",
        "rollout": f"row-{number}",
        "messages": json.dumps(messages),
        "tools": json.dumps([TOOL]),
        "mask": tuple(int(message["role"] == "assistant") for message in messages),
        "token_count": 10 * len(messages),
        "turns": sum(message["role"] == "assistant" for message in messages),
        "harness": "react",
        "model": "oracle",
        "taskset": "workbench",
        "task": f"task-{number}",
        "task_text": "List the files.",
        "outcome": Outcome.COMPLETED,
        "attribution": Attribution.AGENT,
        "reward": 1.0,
    }
    return DatasetRow(**{**given, **fields})


def talk(text: str = "done", *, arguments: str = '{"command": "ls"}', calls: int = 1) -> list[dict[str, Any]]:
    """A question, `calls` calls side by side, their answers, and the end."""
    made = [
        {"id": f"call-{n}", "type": "function", "function": {"name": "bash", "arguments": arguments}}
        for n in range(calls)
    ]
    answers = [
        {"role": "tool", "tool_call_id": f"call-{n}", "content": f"answer {n}: {text}"} for n in range(calls)
    ]
    return [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": "List the files."},
        {"role": "assistant", "content": "I look.", "tool_calls": made},
        *answers,
        {"role": "assistant", "content": text},
    ]


def chat(text: str) -> list[dict[str, Any]]:
    """A question and an answer, without calls."""
    return [{"role": "user", "content": "hello"}, {"role": "assistant", "content": text}]


def plain_rows() -> list[DatasetRow]:
    """What every format that is written must hold."""
    return [
        row(0, talk()),
        row(1, talk("two at once", calls=2)),
        row(2, chat("hi"), tools="[]"),
        row(5, chat("hi again"), tools="[]", reward=0.5),
        row(3, talk("failed"), reward=0.0, harness="miniswe"),
        row(4, talk("unknown"), reward=None, outcome=None, attribution=None, taskset="", task=""),
    ]


def awkward_rows() -> list[DatasetRow]:
    """One awkward text each; a format may refuse a row, and never changes one."""
    texts = [row(n, chat(text), id=f"text-{n}") for n, text in enumerate(AWKWARD)]
    results = [row(n, talk(text), id=f"result-{n}") for n, text in enumerate(AWKWARD)]
    calls = [row(n, talk(arguments=text), id=f"call-{n}") for n, text in enumerate(ARGUMENTS)]
    return [*texts, *results, *calls]


def masked_row() -> DatasetRow:
    """The second answer alone is trained on."""
    messages = [*chat("one"), *chat("two")]
    last = len(messages) - 1
    return row(7, messages, mask=tuple(int(place == last) for place in range(len(messages))))


def said(row: DatasetRow) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Role, text and calls of each message: what any two files of one conversation have in common."""
    return [
        (
            message["role"],
            _text(message.get("content")),
            [_call(call) for call in message.get("tool_calls") or ()],
        )
        for message in json.loads(row.messages)
    ]


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content)
    return content or ""


def _call(call: dict[str, Any]) -> tuple[str, str]:
    function = call["function"]
    return function["name"], same_json(function["arguments"])


def same_json(text: str) -> str:
    """The same for two texts of one JSON value; a text that is none stands for itself."""
    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except ValueError:
        return text
