"""Random rollouts at token level, with the truth kept beside: whose tokens each prompt really holds."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
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
ROLES = {"system": 1010, "user": 1011, "assistant": 1012, "tool": 1013}


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
    answer: list[int]
    text: str
    kind: str
    bare: bool = False
    """The prompt ends before the answer's role, so that the model samples it."""
    finish: str | None = "stop"
    error: str | None = None
    tools: bool = True

    @property
    def rendered(self) -> list[tuple[int, int | None]]:
        """The prompt's ids, each with the call whose answer it belongs to."""
        ids: list[tuple[int, int | None]] = []
        for message in self.said:
            sampled = self.bare and message.call is not None
            ids += [(START, None)] if sampled else [(START, None), (ROLES[message.role], None)]
            ended = message.ids[-1:] == [END]
            ids += [(token, message.call) for token in (message.ids if ended else [*message.ids, END])]
        return [*ids, (START, None)] if self.bare else [*ids, (START, None), (ROLES["assistant"], None)]

    @property
    def prompt(self) -> list[int]:
        """The prompt's ids."""
        return [token for token, _ in self.rendered]

    @property
    def owner(self) -> list[int | None]:
        """Of each id of the prompt, the call whose answer it belongs to."""
        return [call for _, call in self.rendered]


@dataclass
class Talk:
    """A rollout that grows by random steps."""

    rng: Random
    vocabulary: int = 4
    bare: bool = False
    calls: list[Made] = field(default_factory=list)
    fresh: int = 2000

    def step(self, kind: str, *, at: int | None = None) -> None:
        """One further call of a kind, from the ended call `at` where it forks or repeats. Kinds that need an
        earlier call begin a thread without one."""
        if kind == "side":
            self._call(kind, [self._new("system"), self._new("user")], tools=False)
        elif kind == "compact" and self.calls:
            self._call(kind, [self.calls[0].said[0], self._new("user"), self._new("user")])
        elif kind == "resume" and any(call.error for call in self.calls):
            self._call(kind, self._after([call for call in self.calls if call.error][-1]))
        else:
            ended = [call for call in self.calls if call.error is None and call.kind != "side"]
            if ended and kind not in ("root", "compact", "resume"):
                place = at if at is not None else self.rng.randrange(len(ended))
                self._from(kind, ended[-1], ended[place])
            else:
                self._call(kind if kind in _ENDINGS else "root", self._begin())

    def _from(self, kind: str, last: Made, some: Made) -> None:
        """A step that needs an earlier call: the last one, or any."""
        if kind == "fork":
            self._call(kind, self._after(some, then="user"))
        elif kind == "retry":
            self._call(kind, list(some.said))
        elif kind == "ignore":
            self._call(kind, [*last.said, self._new("user")])
        elif kind == "rewrite":
            said = self._after(last)
            place = self.rng.randrange(len(said))
            self.fresh += 1  # an id of its own: by chance it must not spell what another call sampled
            said[place] = replace(said[place], ids=[self.fresh] * len(said[place].ids))
            self._call(kind, said)
        else:
            self._call(kind, self._after(last, drift=kind == "drift"))

    def _after(self, call: Made, *, drift: bool = False, then: str = "tool") -> list[Said]:
        return [*call.said, self._echo(call, drift), self._new(then)]

    def _begin(self) -> list[Said]:
        return [self.calls[0].said[0] if self.calls else self._new("system"), self._new("user")]

    def _new(self, role: str) -> Said:
        self.fresh += 1
        unique = role in ("system", "user")
        count = self.rng.randint(1, 4)
        return Said(
            role, f"{role} {self.fresh}", [self.fresh if unique else self._word() for _ in range(count)]
        )

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
        index, (finish, error) = len(self.calls), _ENDINGS.get(kind, ("stop", None))
        answer = [self._word() for _ in range(self.rng.randint(1, 6))]
        if self.bare:
            answer.insert(0, ROLES["assistant"])
        if finish == "stop":
            answer.append(END)
        made = Made(index, said, answer, f"answer {index}", kind, self.bare, finish, error, tools)
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


_ENDINGS = {"cancel": (None, "Cancelled"), "error": (None, "ModelUnavailable"), "cut": ("length", None)}
"""How the answers of a kind end, where they do not simply stop: finish reason and error."""


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
