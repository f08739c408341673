"""Random rollouts at token level, with the truth kept beside: whose tokens each prompt really holds."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random

from orchard_core import (
    CallError,
    CallTimings,
    Dialect,
    Message,
    MessageRefs,
    ModelCall,
    TokenRefs,
    Trajectory,
    VersionSpan,
)
from orchard_core.gateway.conversation import content_hash

START, END = 1000, 1001


@dataclass
class Said:
    """One message: its text, and its ids as they stand in a prompt."""

    role: str
    text: str
    ids: list[int]
    call: int | None = None
    """The call whose answer this is, as rendered."""


@dataclass
class Made:
    """One call, with the truth."""

    index: int
    said: list[Said]
    prompt: list[int]
    owner: list[int | None]
    """Of each id of the prompt, the call whose answer it belongs to."""
    answer: list[int]
    text: str
    kind: str
    finish: str | None = "stop"
    error: str | None = None
    tools: bool = True


@dataclass
class Talk:
    """A rollout that grows by random steps."""

    rng: Random
    vocabulary: int = 4
    calls: list[Made] = field(default_factory=list)
    fresh: int = 2000

    def step(self, kind: str, *, at: int | None = None) -> None:
        """One further call of a kind, from the ended call `at` where it forks or repeats. Kinds that need an
        earlier call begin a thread without one."""
        ended = [call for call in self.calls if call.error is None and call.kind != "side"]
        if kind in ("append", "drift", "fork", "retry") and not ended:
            kind = "root"
        if kind in ("append", "drift"):
            before = ended[-1]
            self._call(kind, [*before.said, self._echo(before, kind == "drift"), self._new("tool")])
        elif kind == "fork":
            before = ended[self.rng.randrange(len(ended)) if at is None else at]
            self._call(kind, [*before.said, self._echo(before, False), self._new("user")])
        elif kind == "retry":
            before = ended[self.rng.randrange(len(ended)) if at is None else at]
            self._call(kind, list(before.said))
        elif kind in ("cancel", "cut", "error"):
            base = (
                [*ended[-1].said, self._echo(ended[-1], False), self._new("tool")] if ended else self._begin()
            )
            self._call(kind, base)
        elif kind == "side":
            self._call(kind, [self._new("system"), self._new("user")], tools=False)
        elif kind == "compact" and self.calls:
            self._call(kind, [self.calls[0].said[0], self._new("user"), self._new("user")])
        else:
            self._call("root", self._begin())

    def _continued(self, call: Made) -> list[Said]:
        return [*call.said, self._echo(call, False), self._new("tool")]

    def _begin(self) -> list[Said]:
        return [self.calls[0].said[0] if self.calls else self._new("system"), self._new("user")]

    def _new(self, role: str) -> Said:
        self.fresh += 1
        ids = [
            self.fresh if role in ("system", "user") else self._word() for _ in range(self.rng.randint(1, 4))
        ]
        return Said(role, f"{role} {self.fresh}", ids)

    def _word(self) -> int:
        return self.rng.randrange(self.vocabulary)

    def _echo(self, call: Made, drift: bool) -> Said:
        ids = list(call.answer)
        if drift:
            at = self.rng.randrange(len(ids))
            stop = self.rng.randint(at, len(ids))
            ids[at:stop] = [self._word() for _ in range(self.rng.randint(0, 3))]
        return Said("assistant", call.text, ids, call.index)

    def _call(self, kind: str, said: list[Said], *, tools: bool = True) -> None:
        prompt: list[int] = []
        owner: list[int | None] = []
        for message in said:
            ended = [] if message.ids and message.ids[-1] == END else [END]
            ids = [START, *message.ids, *ended]
            prompt += ids
            owner += [None, *[message.call] * len(message.ids), *[message.call] * len(ended)]
        prompt.append(START)
        owner.append(None)
        answer = [self._word() for _ in range(self.rng.randint(1, 6))]
        made = Made(
            len(self.calls), said, prompt, owner, answer, f"answer {len(self.calls)}", kind, tools=tools
        )
        if kind == "cancel":
            made.error, made.finish = "Cancelled", None
        elif kind == "error":
            made.error, made.finish = "ModelUnavailable", None
        elif kind == "cut":
            made.finish = "length"
        else:
            answer.append(END)
        self.calls.append(made)

    def trajectory(self) -> Trajectory:
        """The rollout as it would be recorded, its references made in a random way."""
        messages: dict[str, Message] = {}
        calls = [self._record(call, messages) for call in self.calls]
        return Trajectory(calls=tuple(calls), messages=messages, blobs={"tools": "[]"})

    def _record(self, call: Made, messages: dict[str, Message]) -> ModelCall:
        keys = [_keep(messages, said.role, said.text) for said in call.said]
        base = self.rng.choice([None, *self.calls[: call.index]])
        refs, tokens = MessageRefs(added=tuple(keys)), TokenRefs(added=tuple(call.prompt))
        if base is not None:
            theirs = [_keep(messages, said.role, said.text) for said in base.said]
            kept = _common(theirs, keys)
            refs = MessageRefs(base=base.index, keep=kept, added=tuple(keys[kept:]))
            kept = _common(base.prompt + base.answer, call.prompt)
            tokens = TokenRefs(base=base.index, keep=kept, added=tuple(call.prompt[kept:]))
        middle = len(call.answer) // 2
        return ModelCall(
            index=call.index,
            dialect=Dialect.CHAT,
            messages=refs,
            tools="tools" if call.tools else None,
            response=_keep(messages, "assistant", call.text),
            finish_reason=call.finish,
            prompt_tokens=tokens,
            completion_tokens=tuple(call.answer),
            logprobs=tuple(logprob(call.index, place) for place in range(len(call.answer))),
            versions=(
                VersionSpan(start=0, stop=middle, version="old"),
                VersionSpan(start=middle, stop=len(call.answer), version="new"),
            ),
            timings=CallTimings(started_at=0.0),
            error=None if call.error is None else CallError(kind=call.error, message="x"),
        )


def logprob(call: int, place: int) -> float:
    """Different for every sampled token, so that a sample's log-probability names its token."""
    return -(1 + call * 1000 + place) / 1024


def sampled(value: float) -> tuple[int, int]:
    """Call and place of the token with this log-probability."""
    return divmod(round(-value * 1024) - 1, 1000)


def _keep(messages: dict[str, Message], role: str, text: str) -> str:
    raw = json.dumps({"role": role, "content": text})
    messages[content_hash(raw)] = Message(role=role, raw=raw)
    return content_hash(raw)


def _common(one: list[object] | list[int] | list[str], other: list[object] | list[int] | list[str]) -> int:
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count
