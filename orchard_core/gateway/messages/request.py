"""Reading a messages request: checked once, its messages cut out by their exact text."""

from __future__ import annotations

from orchard_core.gateway.conversation import Conversation
from orchard_core.gateway.dialect import Request
from orchard_core.gateway.heard import heard_of
from orchard_core.gateway.json_text import JsonFault, ascii_text, decode, scan, walk_array
from orchard_core.gateway.members import Members
from orchard_core.types.model import Dialect


def read_request(body: bytes, conversation: Conversation) -> Request:
    """Read a request. Its `system` field counts as the first message. Raises JsonFault."""
    reader = _Reader(decode(body))
    reader.members.walk(reader.member)
    return reader.request(body, conversation)


class _Reader:
    """Visits a request's members."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.members = Members(text)
        self.system: str | None = None
        self.sent: list[str] = []
        self.roles: list[str] = []

    def member(self, key: str, at: int) -> int:
        """One top-level member."""
        if key == "messages":
            return walk_array(self.text, at, self.message)
        value, end = scan(self.text, at)
        raw = self.text[at:end]
        if key == "system":
            self.system = raw
        else:
            self.members.keep(key, value, raw)
        return end

    def message(self, at: int) -> int:
        """One message."""
        value, end = scan(self.text, at)
        role = value.get("role") if isinstance(value, dict) else None
        if not isinstance(role, str):
            raise JsonFault(f"messages[{len(self.sent)}] must be an object with a `role`")
        self.sent.append(self.text[at:end])
        self.roles.append(ascii_text(role))
        return end

    def request(self, body: bytes, conversation: Conversation) -> Request:
        """What was read."""
        if not self.sent:
            given = "messages" in self.members.fields
            raise JsonFault("`messages` must not be empty" if given else "`messages` is missing")
        if self.system is not None:
            self.sent.insert(0, f'{{"role":"system","content":{self.system}}}')
            self.roles.insert(0, "system")
        heard = heard_of(self.sent, self.roles, conversation.heads)
        return self.members.request(Dialect.MESSAGES, body, heard, usage_wanted=True)
