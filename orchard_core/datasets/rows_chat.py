"""The recorded messages of a trajectory as OpenAI chat messages, whatever dialect they travelled in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchard_core.gateway.json_text import JsonFault, dumps, dumps_ascii, loads, scan, walk_array, walk_object
from orchard_core.gateway.messages.blocks import Turns
from orchard_core.gateway.messages.tools import chat_tools as tools_of_messages
from orchard_core.gateway.reasoning import FIELDS, reasoning_of
from orchard_core.gateway.responses.items import chat_messages
from orchard_core.gateway.responses.request import ROLES
from orchard_core.gateway.responses.tools import chat_tools as tools_of_responses
from orchard_core.gateway.said import Said
from orchard_core.gateway.threads import Node
from orchard_core.gateway.turns import is_echo
from orchard_core.types.model import Dialect, ModelCall
from orchard_core.types.trajectory import Trajectory

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """One message of a conversation."""

    text: str
    """JSON of the chat message."""
    role: str
    """Who speaks."""
    call: int | None = None
    """Index of the call whose answer it is; None: it came with a request."""


def spoken(chat: Chat, nodes: Sequence[Node]) -> list[Spoken]:
    """The messages of a thread: its last request, with every answer of the thread as it was sampled."""
    last = nodes[-1]
    sent, wire = last.messages, shape(last.call)
    told: list[Spoken] = []
    at = 0
    for node in nodes:
        place, end = chat.place(node, sent, at) if node is not last else (len(sent), len(sent))
        told += chat.context(sent[at:place], wire)
        told.append(chat.answer(node.call))
        at = end
    return told


def shape(call: ModelCall) -> Dialect:
    """The dialect in which a call's messages are recorded."""
    return call.wire or call.dialect


class Chat:
    """Converts the messages of one trajectory. Of a chat message it keeps what the API defines: role,
    content, name, reasoning, refusal and calls; a server's own fields beside them are left out."""

    def __init__(self, trajectory: Trajectory) -> None:
        self._trajectory = trajectory
        self._texts: dict[str, Spoken] = {}
        self._said: Said | None = None

    def place(self, node: Node, sent: Sequence[str], at: int) -> tuple[int, int]:
        """Where a later request carries the answer of a call, and where it goes on; both `at` or beyond.

        The answer follows the call's own messages; where the harness has spelled these anew, it is found
        itself. Where it is not sent back at all it stands in front of what comes next.
        """
        place = len(node.messages)
        if not (at <= place < len(sent) and self._role(sent[place]) == "assistant"):
            found = (
                other
                for other in range(at, len(sent))
                if is_echo(self._trajectory, node.call, self._trajectory.messages[sent[other]])
            )
            place = next(found, -1)
            if place < 0:
                return at, at
        end = place + 1
        if shape(node.call) is Dialect.RESPONSES:
            while end < len(sent) and self._role(sent[end]) == "assistant":
                end += 1
        return place, end

    def context(self, keys: Sequence[str], wire: Dialect) -> list[Spoken]:
        """Messages of a request that are no answers of the thread."""
        if wire is Dialect.CHAT:
            return [self._chat(key) for key in keys]
        values = [loads(self._trajectory.messages[key].raw) for key in keys]
        return [_spoken(message) for message in self._converted(values, wire)]

    def answer(self, call: ModelCall) -> Spoken:
        """The answer of a call: one assistant message."""
        key, wire = call.response, shape(call)
        if key is None:
            return _spoken({"role": "assistant", "content": ""}, call=call.index)
        if wire is Dialect.CHAT:
            said = self._chat(key)
            return Spoken(text=said.text, role="assistant", call=call.index)
        value = loads(self._trajectory.messages[key].raw)
        items = value["output"] if wire is Dialect.RESPONSES and "output" in value else [value]
        return _spoken(_joined(self._converted(items, wire)), call=call.index)

    def value(self, key: str) -> Fields:
        """A chat message as a value."""
        value: Fields = loads(self._chat(key).text)
        return value

    def tools(self, nodes: Sequence[Node]) -> str:
        """The tools that a thread's last call was shown, and those that earlier ones were shown beside them;
        a JSON array."""
        shown = {(node.call.tools, shape(node.call)): None for node in reversed(nodes) if node.call.tools}
        known: dict[str, Fields] = {}
        for key, wire in shown:
            for tool in _chat_tools(loads(self._trajectory.blobs[str(key)]), wire):
                known.setdefault(_name(tool), tool)
        return dumps(list(known.values())).decode()

    def _role(self, key: str) -> str:
        return self._trajectory.messages[key].role

    def _chat(self, key: str) -> Spoken:
        known = self._texts.get(key)
        if known is None:
            known = self._texts[key] = _spoken(_plain(loads(self._trajectory.messages[key].raw)))
        return known

    def _converted(self, values: Sequence[Any], wire: Dialect) -> list[Fields]:
        if not values:
            return []
        try:
            return [_plain(message) for message in self._translated(values, wire)]
        except (JsonFault, LookupError, TypeError, AttributeError):
            return [_as_text(value) for value in values]

    def _translated(self, values: Sequence[Any], wire: Dialect) -> Sequence[Fields]:
        if wire is Dialect.RESPONSES:
            return chat_messages(None, list(values), Counter())
        turns = Turns(self._recalled().recall(), Counter())
        return [message for place, value in enumerate(values) for message in turns.message(value, place)]

    def _recalled(self) -> Said:
        """The texts of call arguments, which the messages dialect carries as objects."""
        if self._said is None:
            self._said = Said()
            for call in self._trajectory.calls:
                if call.response is not None and shape(call) is Dialect.MESSAGES:
                    self._said.add(_calls_by_text(self._trajectory.messages[call.response].raw))
        return self._said


def _spoken(message: Mapping[str, Any], *, call: int | None = None) -> Spoken:
    return Spoken(text=dumps(message).decode(), role=str(message["role"]), call=call)


_KEPT = ("name", "refusal", "tool_call_id")


def _plain(message: Any) -> Fields:
    """A chat message without what servers and clients add to it."""
    plain: Fields = {"role": message["role"], "content": message.get("content")}
    if (reasoning := reasoning_of(message)) is not None:
        plain[FIELDS[0]] = reasoning[1]
    if isinstance(message.get("tool_calls"), list) and message["tool_calls"]:
        plain["tool_calls"] = [_call(call) for call in message["tool_calls"]]
    plain |= {name: message[name] for name in _KEPT if message.get(name) is not None}
    return plain


def _as_text(value: Fields) -> Fields:
    """A message of a shape that only its server knows: nothing of it is lost, and nothing is made of it."""
    role = value.get("role") or ROLES.get(str(value.get("type")), "assistant")
    return {"role": str(role), "content": dumps(value).decode()}


def _call(call: Any) -> Fields:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return dict(call) if isinstance(call, dict) else {"type": "unknown", "unknown": call}
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else dumps(arguments or {}).decode()
    return {
        "id": str(call.get("id") or ""),
        "type": "function",
        "function": {"name": str(function.get("name") or ""), "arguments": text},
    }


def _joined(messages: Sequence[Fields]) -> Fields:
    """One answer of several messages."""
    if len(messages) == 1:
        return messages[0]
    joined: Fields = {"role": "assistant", "content": None}
    for name in ("content", FIELDS[0], "refusal"):
        texts = [message[name] for message in messages if isinstance(message.get(name), str)]
        if texts:
            joined[name] = "\n\n".join(texts)
    calls = [call for message in messages for call in message.get("tool_calls", ())]
    return {**joined, "tool_calls": calls} if calls else joined


def _chat_tools(tools: Any, wire: Dialect) -> Iterator[Fields]:
    if wire is Dialect.MESSAGES:
        tools = tools_of_messages(tools, None, Counter()).get("tools", [])
    elif wire is Dialect.RESPONSES:
        tools = tools_of_responses(tools, Counter())[0]
    yield from tools


def _name(tool: Fields) -> str:
    function = tool.get("function")
    return str(function.get("name")) if isinstance(function, dict) else dumps_ascii(tool)


def _calls_by_text(raw: str) -> str:
    """An answer of the messages dialect as a chat message whose calls have their arguments' exact text."""
    calls: list[Fields] = []

    def block(at: int) -> int:
        value, end = scan(raw, at)
        if isinstance(value, dict) and value.get("type") == "tool_use":
            calls.append({"id": value.get("id"), "function": {"arguments": _member(raw, at, "input")}})
        return end

    def member(key: str, at: int) -> int:
        value, end = scan(raw, at)
        return walk_array(raw, at, block) if key == "content" and isinstance(value, list) else end

    try:
        walk_object(raw, 0, member)
    except JsonFault:
        calls = []
    return dumps_ascii({"content": None, "tool_calls": calls})


def _member(raw: str, at: int, name: str) -> str:
    found = "{}"

    def member(key: str, start: int) -> int:
        nonlocal found
        end = scan(raw, start)[1]
        if key == name:
            found = raw[start:end]
        return end

    walk_object(raw, at, member)
    return found
