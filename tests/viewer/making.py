"""Runs to look at: with token ids, credit, pictures, subagents, and hostile ones."""

from __future__ import annotations

import base64
import json
import math
import re
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from orchard_core import (
    Artifact,
    Attribution,
    CallTimings,
    Credit,
    Dialect,
    ErrorInfo,
    HarnessResult,
    Message,
    MessageRefs,
    ModelCall,
    Outcome,
    Phase,
    PhaseTiming,
    Provenance,
    RewardResult,
    RiseSegment,
    Rollout,
    StopReason,
    Task,
    TokenRefs,
    Trajectory,
    Usage,
    ValuePoint,
)
from orchard_core.gateway.conversation import content_hash
from orchard_core.rollout.config import RunConfig
from orchard_core.rollout.store.entry import Planned
from orchard_core.rollout.store.writer import RunWriter

Said = Mapping[str, Any]
TOOLS = json.dumps([
    {
        "type": "function",
        "function": {
            "name": "bash",
            "description": "Run a command in the sandbox.",
            "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
        },
    }
])  # fmt: skip
NASTY = (
    "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "<svg onload=alert(1)>javascript:alert(1) \x1b[31mred\x1b[0m \u202egnp.exe \u2066 \x00 \ud800 {{ 7*7 }}"
)
"""What a rollout may say to whoever looks at it."""


def png(width: int = 8, height: int = 8) -> bytes:
    """A real picture of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"\x2b\x6e\xb0" * width for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def data_url(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def answer(text: str | None, *commands: str, thought: str = "", name: str = "bash") -> Said:
    calls = [
        {
            "id": f"call_{at}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps({"command": c})},
        }
        for at, c in enumerate(commands)
    ]
    said: dict[str, Any] = {"role": "assistant", "content": text}
    if thought:
        said["reasoning_content"] = thought
    return {**said, "tool_calls": calls} if calls else said


def tool(text: str | list[Said], call: str = "call_0") -> Said:
    return {"role": "tool", "tool_call_id": call, "content": text}


class Recorder:
    """Calls as a gateway records them; with token ids, a word each."""

    def __init__(self, *, tokens: bool = True) -> None:
        self.calls: list[ModelCall] = []
        self.messages: dict[str, Message] = {}
        self._tokens = tokens
        self._sent: dict[int, list[str]] = {}
        self._sizes: dict[int, int] = {}

    def keep(self, said: Said | str) -> str:
        raw = said if isinstance(said, str) else json.dumps(said)
        role = "?" if isinstance(said, str) else str(said.get("role", "?"))
        key = content_hash(raw)
        self.messages[key] = Message(role=role, raw=raw)
        return key

    def call(self, added: Sequence[Said], said: Said, *, base: int | None = None, error: Any = None) -> int:
        """One call that extends all of another's request and answer; gives its index."""
        index, before = len(self.calls), self._sent.get(base, []) if base is not None else []
        held = self.calls[base].response if base is not None else None
        keys = [*([held] if held else []), *(self.keep(message) for message in added)]
        self._sent[index] = [*before, *keys]
        sampled = _ids(said)
        new = [token for message in added for token in _ids(message)]
        kept = self._sizes[base] if base is not None else 0
        size = kept + len(new)
        self._sizes[index] = size + len(sampled)
        self.calls.append(
            ModelCall(
                index=index,
                dialect=Dialect.CHAT,
                messages=MessageRefs(base=base, keep=len(before), added=tuple(keys)),
                tools="tools",
                params='{"temperature": 1.0, "max_tokens": 4096}',
                response=self.keep(said),
                finish_reason="tool_calls" if said.get("tool_calls") else "stop",
                prompt_tokens=TokenRefs(base=base, keep=kept, added=tuple(new)) if self._tokens else None,
                completion_tokens=tuple(sampled) if self._tokens else None,
                logprobs=tuple(-((at * 7919 + index) % 97) / 40 for at in range(len(sampled)))
                if self._tokens
                else None,
                usage=Usage(input=size // 3, cache_read=size - size // 3, output=len(sampled)),
                cost_usd=0.0012,
                timings=CallTimings(started_at=1.7e9 + index, first_token_s=0.2, total_s=1.4 + index / 10),
                error=error,
            )
        )
        return index

    def trajectory(self, last: Iterable[Said] = ()) -> Trajectory:
        return Trajectory(
            calls=tuple(self.calls),
            messages=self.messages,
            blobs={"tools": TOOLS},
            last_observations=tuple(self.keep(said) for said in last),
        )


def _ids(said: Any) -> list[int]:
    words = json.dumps(said).split()
    return [sum(map(ord, word)) * 31 % 150_000 + len(word) for word in words] + [2]


def worked(turns: int = 6, *, tokens: bool = True, side: bool = True) -> Trajectory:
    """An agent that looks, mends and tests, with a title's side call and a subagent's."""
    recorder = Recorder(tokens=tokens)
    system = {"role": "system", "content": "You are an agent that works in a sandbox. " * 30}
    user = {
        "role": "user",
        "content": "The total in /workspace/report.txt is wrong. Find out why, and mend it.",
    }
    if side:
        recorder.call(
            [{"role": "user", "content": "Name this conversation in three words."}], answer("Wrong total")
        )
    base = recorder.call(
        [system, user],
        answer(
            "I look at the files first.",
            "ls -la /workspace && cat report.txt",
            thought="Where does the total come from?",
        ),
    )
    for turn in range(1, turns):
        seen = tool(
            f"total {turn}\n"
            + "\n".join(f"line {n} of what the command said" for n in range(min(turn, 9) * 6))
        )
        said = answer(
            f"Step {turn}: the sum leaves out the last row.",
            f"sed -n '{turn}p' sum.py\npython sum.py --check",
        )
        if turn == turns - 1:
            said = answer("It is mended: the loop ended one row early. The total is 42.")
        base = recorder.call([seen], said, base=base)
    return recorder.trajectory()


def make_rollout(task: str = "totals-1", attempt: int = 0, **fields: Any) -> Rollout:
    trajectory = fields.pop("trajectory", None) or worked()
    score = fields.pop("score", 1.0)
    values: dict[str, Any] = {
        "id": f"{task}-{attempt}",
        "task": Task(id=task, taskset="bench", instruction="Mend the total.", tags=("tables", "easy")),
        "attempt": attempt,
        "harness": "react",
        "model": "model",
        "outcome": Outcome.COMPLETED,
        "attribution": Attribution.AGENT,
        "result": HarnessResult(stop=StopReason.ANSWERED, turns=6, answer="42"),
        "reward": None
        if score is None
        else RewardResult(score=score, reason="the total is right", log="1 passed\n"),
        "trajectory": trajectory,
        "usage": trajectory.usage,
        "cost_usd": 0.0072,
        "timings": (PhaseTiming(phase=Phase.AGENT, started_at=1.7e9, duration_s=9.5),),
        "started_at": 1.7e9,
        "finished_at": 1.7e9 + 12,
        "provenance": Provenance(
            orchard="0.1.0", harness="1.0", model="model", provider="local", image="host"
        ),
    }
    return Rollout(**(values | fields))


def failed_rollout(task: str, attempt: int = 0, message: str = "the sandbox was killed") -> Rollout:
    return make_rollout(
        task,
        attempt,
        score=None,
        outcome=Outcome.SANDBOX_FAILED,
        attribution=Attribution.INFRASTRUCTURE,
        error=ErrorInfo(kind="SandboxLost", phase=Phase.AGENT, message=message),
    )


async def write_run(root: Path, rollouts: Sequence[Rollout], *, planned: int = 0, **config: Any) -> Path:
    """A run by the real store, with `planned` more rollouts than there are."""
    values = {
        "taskset": "bench",
        "harness": "react",
        "harness_version": "1",
        "model": "model",
        "sandbox": "local",
    }
    items = [
        Planned(id=r.id, task=r.task.id, attempt=r.attempt, seed=r.attempt, tags=r.task.tags)
        for r in rollouts
    ]
    items += [Planned(id=f"open-{n}", task=f"open-{n}", attempt=0, seed=0) for n in range(planned)]
    async with await RunWriter.open(root, RunConfig(**(values | config))) as writer:
        await writer.plan(items)
        for rollout in rollouts:
            await writer.finish(rollout)
    return root


async def finish(root: Path, rollout: Rollout) -> None:
    """One more rollout of a run that is going on."""
    from orchard_core.rollout.store.run import read_config

    async with await RunWriter.open(root, read_config(root), resume=True) as writer:
        await writer.finish(rollout)


def make_credit(rollout: str, turns: int = 6, *, measured: bool = True) -> Credit:
    """A curve that rises in the middle."""
    values = [1 / (1 + math.exp(-(turn - turns / 2) * 1.3)) for turn in range(turns + 1)]
    points = tuple(
        ValuePoint(
            turn=turn,
            value=round(value, 3),
            estimated=turn % 3 != 1,
            low=max(0.0, value - 0.15) if measured else None,
            high=min(1.0, value + 0.15) if measured else None,
            samples=16 if measured else 0,
        )
        for turn, value in enumerate(values)
    )
    mask = tuple(int(turns // 3 <= turn < turns - 1) for turn in range(turns))
    return Credit(
        rollout=rollout,
        estimator="branch" if measured else "judge",
        points=points,
        segments=(RiseSegment(start=turns // 3, stop=turns - 1),),
        mask=mask,
        rollouts=48 if measured else 0,
        cost_usd=0.31,
        settings={"epsilon": 0.05, "merge": "gap-1"},
    )


ARTIFACT = b"what was kept\n"


def with_artifact(root: Path, rollout: Rollout) -> Rollout:
    """The rollout with one artifact, whose blob is put into the run."""
    import hashlib

    name = hashlib.sha256(ARTIFACT).hexdigest()
    place = root / "blobs" / name[:2] / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(ARTIFACT)
    kept = Artifact(path="/workspace/report.txt", kind="file", sha256=name, size=len(ARTIFACT))
    return rollout.model_copy(update={"artifacts": (kept,)})


def listed(page: str) -> list[str]:
    """Tasks and attempts of a list's page, in order."""
    found = re.findall(r'<th scope="row" class="t"><a href="[^"]*">([^<]*)<span class="at">(#\d+)', page)
    return [task + attempt for task, attempt in found]
