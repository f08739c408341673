"""Synthetic rollouts as JSON lines: several harnesses, 30 turns, a long tail of lengths, some of them broken.

The text is cut from the standard library's own source, so that it compresses as code does. Every file is the
same for the same arguments.
"""

from __future__ import annotations

import random
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

HARNESSES = {
    "react": ("bash", "read_file", "submit"),
    "mini-swe-agent": ("bash",),
    "openhands": ("execute_bash", "str_replace_editor", "think", "finish"),
    "cli:codex": ("shell", "apply_patch"),
}
TURNS = 30
MEDIAN_TOKENS, SIGMA, LONGEST = 12_000, 0.75, 64_000
BROKEN = ("over_long", "undefined_tools", "unparsable", "format_error", "failed", "duplicate")
EACH = 0.01
"""Share of rows broken in each of these ways."""


def write_sources(folder: Path, rollouts: int) -> list[Path]:
    """A file for each harness."""
    corpus = _corpus()
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, harness in enumerate(HARNESSES):
        path = folder / f"{harness.replace(':', '-')}.jsonl"
        with path.open("wb") as file:
            for line in _lines(harness, rollouts // len(HARNESSES), random.Random(number), corpus):
                file.write(line + b"\n")
        paths.append(path)
    return paths


def _lines(harness: str, count: int, draw: random.Random, corpus: str) -> Iterator[bytes]:
    before: dict[str, Any] = {}
    for number in range(count):
        how = draw.choice(BROKEN) if draw.random() < EACH * len(BROKEN) else ""
        row = rollout(harness, number, how if how != "duplicate" or before else "", draw, corpus)
        if how == "duplicate" and before:
            row |= {"messages": before["messages"], "tools": before["tools"]}
        before = row
        yield orjson.dumps(row)


def rollout(harness: str, number: int, how: str, draw: random.Random, corpus: str) -> dict[str, Any]:
    """One row: `messages` and `tools`, and what else is known of it, as Orchard's exports carry it."""
    tokens = min(LONGEST, int(draw.lognormvariate(0, SIGMA) * MEDIAN_TOKENS))
    tokens = 70_000 if how == "over_long" else tokens
    name, task = f"{harness}-{number:06d}", number % 5000
    facts = {
        "schema_version": 1, "id": name, "rollout": name, "harness": harness, "model": f"teacher-{task % 2}",
        "taskset": "synthetic", "task": f"task-{task:05d}", "task_text": f"Mend fault {task}.",
        "outcome": "harness_failed" if how == "failed" else "completed", "token_count": tokens,
        "reward": float(draw.random() < 0.5),
    }  # fmt: skip
    return {
        "id": name, "messages": _messages(harness, tokens, how, draw, corpus), "tools": _tools(harness),
        "outcome": facts["outcome"], "token_count": tokens, "orchard": orjson.dumps(facts).decode(),
    }  # fmt: skip


def _messages(harness: str, tokens: int, how: str, draw: random.Random, corpus: str) -> list[dict[str, Any]]:
    size = 4 * tokens // (TURNS + 1)
    bad = draw.randrange(TURNS) if how else -1
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": f"You are {harness}."},
        {"role": "user", "content": _cut(corpus, draw, size)},
    ]
    for turn in range(TURNS):
        tool = draw.choice(HARNESSES[harness])
        text = orjson.dumps({"command": _cut(corpus, draw, size // 6)}).decode()
        if turn == bad:
            tool = "teleport" if how == "undefined_tools" else tool
            text = text[:-2] if how == "unparsable" else text
        call = {"id": f"call-{turn}", "type": "function", "function": {"name": tool, "arguments": text}}
        told = _cut(corpus, draw, 2 * size // 3)
        if turn == bad and how == "format_error":
            told = "There is no tool 'bsh'. Did you mean bash? The tools are: bash."
        messages += [
            {"role": "assistant", "content": _cut(corpus, draw, size // 6), "tool_calls": [call]},
            {"role": "tool", "content": told, "tool_call_id": f"call-{turn}"},
        ]
    return messages


def _tools(harness: str) -> str:
    schema = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
    named = [{"name": name, "description": f"{name} of {harness}"} for name in HARNESSES[harness]]
    tools = [{"type": "function", "function": {**told, "parameters": schema}} for told in named]
    return orjson.dumps(tools).decode()


def _cut(corpus: str, draw: random.Random, size: int) -> str:
    start = draw.randrange(len(corpus) - size)
    return corpus[start : start + size]


def _corpus() -> str:
    folder = Path(sysconfig.get_paths()["stdlib"])
    return "".join(path.read_text(encoding="utf-8", errors="ignore") for path in sorted(folder.glob("*.py")))
