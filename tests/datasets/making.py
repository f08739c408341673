"""Rollouts and rows for tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from orchard_core import (
    AnswerSpan,
    CallTimings,
    DatasetRow,
    Dialect,
    Message,
    MessageRefs,
    ModelCall,
    Outcome,
    RecordedTokens,
    Rollout,
    Trajectory,
    Usage,
    VersionSpan,
)
from orchard_core.gateway.conversation import content_hash
from tests.rollout.making import make_rollout

Json = dict[str, Any]


def rollout_of(trajectory: Trajectory, **fields: object) -> Rollout:
    """A rollout that went so."""
    changed = {"trajectory": trajectory, "usage": trajectory.usage}
    return make_rollout(**fields).model_copy(update=changed)  # type: ignore[arg-type]


@dataclass
class Recorded:
    """Calls in the dialect of a server, each going on from the one before."""

    wire: Dialect = Dialect.CHAT
    tools: str | None = None
    calls: list[ModelCall] = field(default_factory=list)
    messages: dict[str, Message] = field(default_factory=dict)

    def call(self, request: Sequence[Json | str], answer: Json | str, *, usage: Usage | None = None) -> None:
        """One call; messages as values, or as the text that was sent."""
        self.calls.append(
            ModelCall(
                index=len(self.calls),
                dialect=self.wire,
                messages=MessageRefs(added=tuple(self._keep(message) for message in request)),
                tools=None if self.tools is None else "tools",
                response=self._keep(answer),
                finish_reason="stop",
                usage=usage or Usage(),
                timings=CallTimings(started_at=0.0),
            )
        )

    def rollout(self, **fields: object) -> Rollout:
        blobs = {} if self.tools is None else {"tools": self.tools}
        trajectory = Trajectory(calls=tuple(self.calls), messages=self.messages, blobs=blobs)
        return rollout_of(trajectory, **fields)

    def _keep(self, message: Json | str) -> str:
        raw = message if isinstance(message, str) else json.dumps(message)
        said = json.loads(raw)
        role = said.get("role") or ("tool" if "output" in said.get("type", "") else "assistant")
        self.messages[content_hash(raw)] = Message(role=role, raw=raw)
        return content_hash(raw)


def said(row: DatasetRow) -> list[Json]:
    """A row's messages."""
    messages: list[Json] = json.loads(row.messages)
    return messages


def make_row(number: int = 0, *, recorded: bool = False, **fields: Any) -> DatasetRow:
    """A row of one turn; each number another task."""
    messages = [
        {"role": "user", "content": f"Do {number}."},
        {"role": "assistant", "content": f"Dön{number}."},
    ]
    values: Json = {
        "id": f"row{number}",
        "rollout": f"row{number}",
        "messages": json.dumps(messages, ensure_ascii=False),
        "mask": (0, 1),
        "token_count": 5 + number,
        "turns": 1,
        "harness": "react" if number % 2 else "miniswe",
        "model": "oracle",
        "taskset": "set",
        "task": f"task{number}",
        "task_text": f"Do {number}.",
        "tags": ("easy",) * (number % 3),
        "outcome": Outcome.COMPLETED if number % 2 else None,
        "reward": float(number % 2) if number % 5 else None,
        "provenance": {"run": "first", "orchard": "0"},
        "tokens": make_tokens() if recorded else None,
    }
    return DatasetRow(**(values | fields))


def make_tokens() -> RecordedTokens:
    return RecordedTokens(
        token_ids=(1, 2, 150_000, 4),
        mask=(0, 0, 1, 1),
        logprobs=(0.0, 0.0, -0.1, -1.5),
        versions=(VersionSpan(start=2, stop=4, version="step-7"),),
        answers=(AnswerSpan(message=1, start=2, stop=4),),
    )
