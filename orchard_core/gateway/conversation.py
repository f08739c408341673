"""What a session has heard so far: each message once, and where conversations stand."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from orchard_core.gateway.json_text import ascii_text
from orchard_core.gateway.said import Said
from orchard_core.types.model import Message, MessageRefs

HEADS = 8
"""How many conversations of one session are followed at once (main thread, subagents, side calls)."""


@dataclass(slots=True, kw_only=True, eq=False)
class Head:
    """A recorded call as the possible beginning of a later one."""

    index: int
    """The call's index."""
    sent: Sequence[str]
    """JSON text of each of its messages, exactly as it was sent."""
    answer: str | None = None
    """JSON text of its answer's message, ASCII only."""
    complete: bool = True
    """The answer came to its end."""
    prompt: int = 0
    """How many of `tokens` are its prompt."""
    tokens: array[int] | None = None
    """Ids of its prompt and answer; None when the server did not tell."""


@dataclass(slots=True, kw_only=True)
class Heard:
    """A request's messages as a change to an earlier call."""

    base: Head | None
    """The earlier call that shares the longest beginning."""
    keep: int
    """How many messages are shared."""
    sent: Sequence[str]
    """JSON text of all messages, exactly as sent."""
    roles: Sequence[str]
    """Roles of the messages that are not shared."""
    full: Sequence[Head] = ()
    """Earlier calls whose whole request stands at the front of this one, longest first."""


@dataclass(slots=True)
class Conversation:
    """The messages of one session."""

    messages: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Role and ASCII JSON text by content hash."""
    blobs: dict[str, str] = field(default_factory=dict)
    """Tool definitions by content hash."""
    heads: list[Head] = field(default_factory=list)
    """Where conversations stand, most recent first."""
    said: Said = field(default_factory=Said)
    """Answers to requests of dialects that cannot carry them back exactly."""

    def refs(self, heard: Heard) -> MessageRefs:
        """Store what is new of a request and tell it as a change."""
        added = tuple(
            self.store(role, ascii_text(raw))
            for role, raw in zip(heard.roles, heard.sent[heard.keep :], strict=True)
        )
        base = heard.base.index if heard.base and heard.keep else None
        return MessageRefs(base=base, keep=heard.keep if base is not None else 0, added=added)

    def store(self, role: str, raw: str) -> str:
        """Keep one message (ASCII JSON text) and return its content hash."""
        key = content_hash(raw)
        self.messages.setdefault(key, (role, raw))
        return key

    def store_blob(self, text: str) -> str:
        """Keep tool definitions and return their content hash."""
        key = content_hash(text)
        self.blobs.setdefault(key, text)
        return key

    def advance(self, head: Head, heard: Heard) -> None:
        """A call is recorded: later ones may begin with it."""
        extends = heard.base is not None and heard.keep == len(heard.base.sent) < len(heard.sent)
        if extends and heard.base in self.heads:
            self.heads.remove(heard.base)
        self.heads.insert(0, head)
        del self.heads[HEADS:]

    def message_records(self) -> dict[str, Message]:
        """All messages as they are stored."""
        return {key: Message(role=role, raw=raw) for key, (role, raw) in self.messages.items()}


def content_hash(text: str) -> str:
    """128 bits of SHA-256, in hexadecimal: enough for the messages of one rollout, and half the bytes."""
    return sha256(text.encode()).hexdigest()[:32]
