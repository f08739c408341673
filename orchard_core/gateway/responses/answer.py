"""A whole chat completion as a whole response."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from orchard_core.errors import ModelReplyMalformed
from orchard_core.gateway.json_text import JsonFault, dumps, loads
from orchard_core.gateway.reasoning import reasoning_of
from orchard_core.gateway.responses import made
from orchard_core.gateway.responses.carried import Carried, flat, remainder
from orchard_core.gateway.responses.items import chat_messages
from orchard_core.gateway.responses.made import Item, new_id, tool_of


def answer(body: bytes, notes: Mapping[str, object]) -> bytes:
    """Raises ModelReplyMalformed."""
    try:
        reply = loads(body)
        choice = reply["choices"][0]
        output = output_items(choice["message"], notes)
        head = {**reply, "id": new_id("resp")}
        ended = made.state(choice.get("finish_reason"), reply.get("usage"))
        return dumps(made.response(head, output, **ended))
    except (JsonFault, LookupError, TypeError, AttributeError) as error:
        raise ModelReplyMalformed(
            f"the model server's answer is not a chat completion: {error!r}",
            hint="check that the model's base URL ends in the API's root, such as /v1",
        ) from None


def output_items(message: dict[str, Any], notes: Mapping[str, object]) -> list[Item]:
    """Items that, sent back, become the message again."""
    calls = [called(call, place) for place, call in enumerate(message.get("tool_calls") or ())]
    message = {**message, "tool_calls": calls}
    items: list[Item] = []
    if (reasoning := reasoning_of(message)) is not None:
        name, thought = reasoning
        items.append(made.reasoning(new_id("rs"), thought, Carried(name=name)))
    text, refusal = flat(message.get("content")), message.get("refusal")
    parts = [made.part(text)] if text else []
    if isinstance(refusal, str) and refusal:
        parts.append(made.refusal_part(refusal))
    if parts or not (items or calls):
        items.append(made.message(new_id("msg"), parts or [made.part("")]))
    for call in calls:
        function = call["function"]
        tool = tool_of(function["name"], notes)
        key = new_id("ctc" if tool.custom else "fc")
        items.append(made.call(key, call["id"], tool, function["arguments"]))
    return [*items, *rest(message, items)]


def rest(message: Mapping[str, Any], items: list[Item]) -> list[Item]:
    """One more item for what the others cannot say of the message, where there is such a thing."""
    carried = remainder(message, chat_messages(None, items, Counter())[-1])
    if not carried.rest and not carried.calls:
        return []
    return [made.reasoning(new_id("rs"), "", carried)]


def called(call: dict[str, Any], place: int) -> dict[str, Any]:
    """A tool call with an id, which its result needs, and arguments that are text."""
    function = call["function"]
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else dumps(arguments or {}).decode()
    key = call.get("id") or new_id(f"call{place}")
    return {**call, "id": key, "function": {**function, "arguments": text}}
