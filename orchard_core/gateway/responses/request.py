"""Reading a responses request: checked once, its items cut out by their exact text."""

from __future__ import annotations

from orchard_core.gateway.conversation import Conversation
from orchard_core.gateway.dialect import Request
from orchard_core.gateway.heard import heard_of
from orchard_core.gateway.json_text import JsonFault, ascii_text, decode, scan, walk_array
from orchard_core.gateway.members import Members
from orchard_core.types.model import Dialect

ROLES = {
    "reasoning": "assistant",
    "function_call": "assistant",
    "custom_tool_call": "assistant",
    "local_shell_call": "assistant",
    "function_call_output": "tool",
    "custom_tool_call_output": "tool",
    "local_shell_call_output": "tool",
}
"""Who speaks in an item that is no message. What is not here is the model's: servers run its tools."""


def read_request(body: bytes, conversation: Conversation) -> Request:
    """Read a request. Its `instructions` count as the first message. Raises JsonFault."""
    reader = _Reader(decode(body))
    reader.members.walk(reader.member)
    return reader.request(body, conversation)


class _Reader:
    """Visits a request's members."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.members = Members(text)
        self.instructions: str | None = None
        self.sent: list[str] = []
        self.roles: list[str] = []

    def member(self, key: str, at: int) -> int:
        """One top-level member."""
        if key == "input" and self.text[at : at + 1] == "[":
            return walk_array(self.text, at, self.item)
        value, end = scan(self.text, at)
        raw = self.text[at:end]
        if key == "input":
            self.only(value, raw)
        elif key == "instructions" and value is not None:
            self.instructions = raw
        else:
            self.members.keep(key, value, raw)
        return end

    def only(self, value: object, raw: str) -> None:
        """Input that is one text."""
        if not isinstance(value, str):
            raise JsonFault("`input` must be a string or an array of items")
        self.sent.append(f'{{"role":"user","content":{raw}}}')
        self.roles.append("user")

    def item(self, at: int) -> int:
        """One item."""
        value, end = scan(self.text, at)
        if not isinstance(value, dict):
            raise JsonFault(f"input[{len(self.sent)}] must be an object")
        role = value.get("role")
        kind = value.get("type")
        if not isinstance(role, str):
            role = ROLES.get(kind, "assistant") if isinstance(kind, str) else "user"
        self.sent.append(self.text[at:end])
        self.roles.append(ascii_text(role))
        return end

    def request(self, body: bytes, conversation: Conversation) -> Request:
        """What was read."""
        if not self.sent:
            given = "input" in self.members.fields
            raise JsonFault("`input` is empty" if given else "`input` is missing")
        if self.instructions is not None:
            self.sent.insert(0, f'{{"role":"system","content":{self.instructions}}}')
            self.roles.insert(0, "system")
        heard = heard_of(self.sent, self.roles, conversation.heads)
        return self.members.request(Dialect.RESPONSES, body, heard, usage_wanted=True)
