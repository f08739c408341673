"""Reading a chat completions request: validated once, its messages cut out by their exact text."""

from __future__ import annotations

from typing import Any

from orchard_core.gateway.conversation import Conversation, Head, Heard
from orchard_core.gateway.dialect import Request
from orchard_core.gateway.json_text import JsonFault, ascii_text, decode, scan, skip, walk_array
from orchard_core.gateway.members import Members
from orchard_core.types.model import Dialect


def read_request(body: bytes, conversation: Conversation) -> Request:
    """Read a request. Raises JsonFault."""
    reader = _Reader(decode(body), conversation.heads)
    reader.members.walk(reader.member)
    return reader.request(body)


class _Reader:
    """Visits a request's members."""

    def __init__(self, text: str, heads: list[Head]) -> None:
        self.text = text
        self.heads = heads
        self.members = Members(text)
        self.heard: Heard | None = None

    def member(self, key: str, at: int) -> int:
        """One top-level member."""
        if key == "messages":
            return self.messages(at)
        value, end = scan(self.text, at)
        self.members.keep(key, value, self.text[at:end])
        return end

    def messages(self, at: int) -> int:
        """The conversation: what an earlier request sent already is skipped by comparing text."""
        shared = []
        for head in self.heads:
            shared.append((*self.shared(head, at), head))
            if shared[-1][0] == len(head.sent) and head.answer is not None:
                break
        keep, resume, base = max(shared, key=lambda entry: entry[0], default=(0, at, None))
        full = [head for count, _, head in shared if count == len(head.sent)]
        full.sort(key=lambda head: -len(head.sent))
        sent = list(base.sent[:keep]) if base else []
        roles: list[str] = []

        def message(start: int) -> int:
            value, end = scan(self.text, start)
            role = value.get("role") if isinstance(value, dict) else None
            if not isinstance(role, str):
                raise JsonFault(f"messages[{len(sent)}] must be an object with a `role`")
            sent.append(self.text[start:end])
            roles.append(ascii_text(role))
            return end

        end = self.rest(resume, message) if keep else walk_array(self.text, at, message)
        if not sent:
            raise JsonFault("`messages` must not be empty")
        self.heard = Heard(base=base, keep=keep, sent=sent, roles=roles, full=full)
        return end

    def shared(self, head: Head, at: int) -> tuple[int, int]:
        """How many of an earlier request's messages stand at the front, and where the last one ends.

        A message's text is a whole object, so that finding it at an element's start is finding the element.
        """
        text, count, end = self.text, 0, at
        start = skip(text, at + 1)
        for raw in head.sent:
            if not text.startswith(raw, start):
                break
            count, end = count + 1, start + len(raw)
            between = text[end : end + 2]
            start = end + 2 if between == ", " else end + 1 if between == ",{" else self.following(end)
        return count, end

    def following(self, end: int) -> int:
        """Where the element after the one that ends at `end` would start."""
        at = skip(self.text, end)
        return skip(self.text, at + 1) if self.text[at : at + 1] == "," else at

    def rest(self, end: int, message: Any) -> int:
        """Walk on after the shared messages."""
        text = self.text
        at = skip(text, end)
        while text[at : at + 1] != "]":
            if text[at : at + 1] != ",":
                raise JsonFault(f"',' was expected at character {at}")
            at = skip(text, message(skip(text, at + 1)))
        return at + 1

    def request(self, body: bytes) -> Request:
        """What was read."""
        values = self.members.values
        if self.heard is None:
            raise JsonFault("`messages` is missing")
        if values.get("n", 1) not in (1, None):
            raise JsonFault("`n` must be 1: every answer is recorded as a call of its own")
        options = values.get("stream_options")
        wanted = isinstance(options, dict) and options.get("include_usage") is True
        return self.members.request(Dialect.CHAT, body, self.heard, usage_wanted=wanted)
