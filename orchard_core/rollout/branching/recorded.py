"""A rollout's model calls, as they are replayed: requests to be recognised, answers to be given again."""

from __future__ import annotations

import hashlib
import json
import re
from array import array
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from orchard_core.errors import ModelRejected
from orchard_core.gateway.contract import UpstreamRequest
from orchard_core.gateway.conversation import Conversation
from orchard_core.gateway.dialects import SPOKEN
from orchard_core.gateway.expand import conversations, prompts
from orchard_core.gateway.json_text import JsonFault, loads
from orchard_core.gateway.labels import label_threads
from orchard_core.gateway.threads import graph, starts_thread, thread_of
from orchard_core.types.model import ModelCall
from orchard_core.types.sample import SampleLabel
from orchard_core.types.trajectory import Trajectory

CODECS = {spoken.native.dialect: spoken.native for spoken in SPOKEN}
"""What reads and writes each wire protocol."""

_DIGITS = re.compile(r"[0-9]+")


class Same(StrEnum):
    """When a request is the recorded one. The order of members and blanks between them never count."""

    EXACT = "exact"
    """Every text is the same."""
    NUMBERS = "numbers"
    """Every text is the same but for its digits: durations, times and process ids may differ, and so may
    counts that mean something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a request asks, sampling parameters aside."""

    tools: str
    """Hash of the tool definitions."""
    messages: tuple[str, ...]
    """Hash of each message, the conversation in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """One answered call."""

    asked: Asked
    """Its request."""
    call: ModelCall
    """The record."""
    message: str
    """JSON text of the answer's message, exactly as it was given."""
    prompt: array[int] | None
    """Ids of its prompt; None when the server did not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """The calls of one rollout that were answered whole. Those that failed or were cut are left out: the
    harness asked again, or ended."""

    calls: Sequence[RecordedCall]
    """In order of arrival."""
    turns: Sequence[int]
    """[T] Indices of the calls whose answers are the main conversation's."""
    same: Same = Same.EXACT
    """When a request is one of these."""

    @classmethod
    def of(cls, trajectory: Trajectory, *, same: Same = Same.EXACT) -> Recording:
        """Raises RecordCorrupt when calls that others build on are missing."""
        sent, ids = conversations(trajectory), prompts(trajectory)
        calls = [
            RecordedCall(
                asked=_asked(
                    (trajectory.messages[key].raw for key in sent[call.index]),
                    trajectory.blobs.get(call.tools or ""),
                    same,
                ),
                call=call,
                message=trajectory.messages[call.response].raw,
                prompt=ids.get(call.index),
            )
            for call in trajectory.calls
            if call.response is not None and call.error is None
        ]
        return cls(calls=calls, turns=main_calls(trajectory), same=same)


def main_calls(trajectory: Trajectory) -> tuple[int, ...]:
    """[T] Indices of the calls of the main conversation, in order. Raises RecordCorrupt."""
    starts = [node for node in graph(trajectory, every=True) if node.dropped is None and starts_thread(node)]
    labels = label_threads(trajectory, starts)
    main = next((start for start in starts if labels[start.index] is SampleLabel.MAIN), None)
    return () if main is None else tuple(node.index for node in thread_of(main))


def asked_by(request: UpstreamRequest, same: Same = Same.EXACT) -> Asked:
    """What a request asks. Raises ModelRejected for one that cannot be read."""
    try:
        read = CODECS[request.dialect].request(request.body, Conversation())
    except JsonFault as fault:
        raise ModelRejected(f"the request cannot be read: {fault}", status=400) from None
    return _asked(read.heard.sent, read.tools, same)


def _asked(messages: Iterable[str], tools: str | None, same: Same) -> Asked:
    return Asked(
        tools=_hash(tools or "null", Same.EXACT), messages=tuple(_hash(text, same) for text in messages)
    )


def _hash(text: str, same: Same) -> str:
    with suppress(JsonFault, ValueError, RecursionError):  # too deep, or no JSON: compared as it is
        text = json.dumps(loads(text), sort_keys=True, separators=(",", ":"))
    if same is Same.NUMBERS:
        text = _DIGITS.sub("0", text)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
