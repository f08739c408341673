"""Chat messages as ATIF steps, and back.

A step is one message, or an answer with the tool results that follow it. What a step cannot say (another
role, a null content, arguments that are no object, half a surrogate pair) is told again, to the letter, in
`extra`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from orchard_core.formats.conversation import Fields
from orchard_core.formats.fault import Fault
from orchard_core.formats.imported import CARRIED
from orchard_core.formats.text import a_list, a_text, an_object, dumped, dumps_spaced, parsed

SOURCES = {"system": "system", "user": "user", "assistant": "agent"}
"""A message's role to a step's source."""
_ROLES = {source: role for role, source in SOURCES.items()}


def groups(messages: Sequence[Fields]) -> Iterator[list[Fields]]:
    """Messages that make one step together."""
    group: list[Fields] = []
    for message in messages:
        if group and message["role"] == "tool" and group[0]["role"] == "assistant":
            group.append(message)
            continue
        if group:
            yield group
        group = [message]
    if group:
        yield group


def step_of(group: Sequence[Fields], number: int) -> Fields:
    """The step of one group."""
    step = _plain(_without_halves(list(group)))
    if messages_of(step, "") != list(group):
        step.setdefault("extra", {})[CARRIED] = {"messages": [dumped(message) for message in group]}
    return {"step_id": number, **step}


def messages_of(step: Fields, where: str) -> list[Fields]:
    """The messages of a step. What is told to the letter counts as long as the step says the same. Raises
    Fault."""
    extra = step.get("extra")
    told = extra.get(CARRIED) if isinstance(extra, dict) else None
    if isinstance(told, dict) and "messages" in told:
        listed = a_list(told["messages"], f"{where}.extra.{CARRIED}.messages")
        exact = [an_object(parsed(a_text(text, where), field=where), where) for text in listed]
        if (
            exact
            and all("role" in message for message in exact)
            and _said(_plain(_without_halves(exact))) == _said(step)
        ):
            return exact
    return _natural(step, where)


def _said(step: Fields) -> Fields:
    """What both forms of a step have to agree in."""
    return {
        name: step.get(name)
        for name in ("source", "message", "reasoning_content", "tool_calls", "observation")
    }


def _plain(group: Sequence[Fields]) -> Fields:
    first, rest = group[0], group[1:]
    role = str(first["role"])
    if role == "tool":
        return {"source": "system", "message": "", "observation": {"results": [_result(first, ())]}}
    step: Fields = {"source": SOURCES.get(role, "user"), "message": _content(first.get("content"))}
    if role != "assistant":
        return step
    if isinstance(first.get("reasoning_content"), str):
        step["reasoning_content"] = first["reasoning_content"]
    calls = first.get("tool_calls") or ()
    if calls:
        step["tool_calls"] = [_call(call) for call in calls]
    if rest:
        step["observation"] = {"results": [_result(message, calls) for message in rest]}
    return step


def _call(call: Fields) -> Fields:
    given = call.get("function")
    function: Fields = given if isinstance(given, dict) else {}
    text = str(function.get("arguments", ""))
    made = {"tool_call_id": str(call.get("id", "")), "function_name": str(function.get("name", ""))}
    try:
        value = an_object(parsed(text), "")
    except Fault:
        return {**made, "arguments": {}, "extra": {CARRIED: {"arguments": text}}}
    if text == dumped(value):
        return {**made, "arguments": value}
    note = {"spaced": True} if text == dumps_spaced(value) else {"arguments": text}
    return {**made, "arguments": value, "extra": {CARRIED: note}}


def _result(message: Fields, calls: Sequence[Fields]) -> Fields:
    known = {call.get("id") for call in calls}
    call_id = message.get("tool_call_id")
    result: Fields = {"content": _content(message.get("content"))}
    return {"source_call_id": call_id, **result} if isinstance(call_id, str) and call_id in known else result


def _content(content: Any) -> Any:
    """A text, or parts of text and pictures; pictures keep their URL until the files are written."""
    if not isinstance(content, list):
        return content or ""
    return [_part(part) for part in content if isinstance(part, dict)]


def _part(part: Fields) -> Fields:
    held = part.get("image_url")
    if part.get("type") == "image_url" and isinstance(held, dict) and isinstance(held.get("url"), str):
        return {"type": "image", "source": {"media_type": _media_type(held["url"]), "path": held["url"]}}
    text = part.get("text")
    return {"type": "text", "text": text if isinstance(text, str) else dumped(part)}


def _media_type(url: str) -> str:
    head = url[:64].lower()
    for kind in ("png", "jpeg", "gif", "webp"):
        if head.startswith(f"data:image/{kind}") or url.lower().endswith(f".{kind}"):
            return f"image/{kind}"
    return "image/jpeg" if url.lower().endswith(".jpg") else "image/png"


def _natural(step: Fields, where: str) -> list[Fields]:
    source = step.get("source")
    if source not in _ROLES:
        raise Fault("it is none of system, user and agent", field=f"{where}.source")
    message: Fields = {
        "role": _ROLES[source],
        "content": _content_of(step.get("message"), f"{where}.message"),
    }
    if isinstance(step.get("reasoning_content"), str):
        message["reasoning_content"] = step["reasoning_content"]
    calls = step.get("tool_calls")
    if calls:
        listed = a_list(calls, f"{where}.tool_calls")
        message["tool_calls"] = [
            _call_of(call, f"{where}.tool_calls[{place}]") for place, call in enumerate(listed)
        ]
    observation = step.get("observation")
    if observation is None:
        return [message]
    results = a_list(
        an_object(observation, f"{where}.observation").get("results"), f"{where}.observation.results"
    )
    return [
        message,
        *(
            _answer_of(result, f"{where}.observation.results[{place}]")
            for place, result in enumerate(results)
        ),
    ]


def _answer_of(value: Any, where: str) -> Fields:
    """A result of a call is a tool's message; of an action that was no call, the user's."""
    result = an_object(value, where)
    content = _content_of("" if result.get("content") is None else result["content"], f"{where}.content")
    call_id = result.get("source_call_id")
    if call_id is None:
        return {"role": "user", "content": content}
    return {"role": "tool", "content": content, "tool_call_id": a_text(call_id, f"{where}.source_call_id")}


def _call_of(value: Any, where: str) -> Fields:
    call = an_object(value, where)
    arguments = an_object(call.get("arguments"), f"{where}.arguments")
    extra = call.get("extra")
    note = extra.get(CARRIED) if isinstance(extra, dict) else None
    text = dumped(arguments)
    if isinstance(note, dict):
        text = (
            dumps_spaced(arguments) if note.get("spaced") else _exact(note.get("arguments"), arguments, text)
        )
    return {
        "id": a_text(call.get("tool_call_id"), f"{where}.tool_call_id"),
        "type": "function",
        "function": {"name": a_text(call.get("function_name"), f"{where}.function_name"), "arguments": text},
    }


def _exact(text: Any, arguments: Fields, otherwise: str) -> str:
    """The text that was sampled, as long as the object still says the same."""
    if not isinstance(text, str):
        return otherwise
    try:
        value = parsed(text)
    except Fault:
        value = {}
    return text if (value if isinstance(value, dict) else {}) == arguments else otherwise


def _content_of(value: Any, where: str) -> Any:
    if isinstance(value, str):
        return value
    return [_part_of(part, f"{where}[{place}]") for place, part in enumerate(a_list(value, where))]


def _part_of(value: Any, where: str) -> Fields:
    part = an_object(value, where)
    if part.get("type") == "text":
        return {"type": "text", "text": a_text(part.get("text"), f"{where}.text")}
    if part.get("type") == "image":
        source = an_object(part.get("source"), f"{where}.source")
        return {"type": "image_url", "image_url": {"url": a_text(source.get("path"), f"{where}.source.path")}}
    if part.get("type") == "audio":
        source = an_object(part.get("source"), f"{where}.source")
        return {"type": "audio", "source": source}
    raise Fault("a part is none of text, image and audio", field=f"{where}.type")


def _without_halves(value: Any) -> Any:
    """The value with half surrogate pairs replaced, which ATIF's readers refuse in a text."""
    if isinstance(value, dict):
        return {_without_halves(key): _without_halves(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_halves(item) for item in value]
    if isinstance(value, str) and not value.isascii():
        return (
            value.encode("utf-8", "replace").decode()
            if any("\ud800" <= c <= "\udfff" for c in value)
            else value
        )
    return value
