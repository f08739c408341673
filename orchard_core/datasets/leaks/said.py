"""The words of a conversation, as one text."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

_DEEP = 32


def said(messages: str) -> str:
    """Every text in a row's messages, one after the other, with the arguments of calls; roles, ids and the
    data of images left out. Of what is no JSON, the text as it stands."""
    try:
        told = orjson.loads(messages)
    except ValueError:
        return messages
    return "\n".join(_texts(told, _DEEP))


def _texts(value: object, deep: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list) and deep:
        for each in value:
            yield from _texts(each, deep - 1)
    elif isinstance(value, dict) and deep:
        for name, each in value.items():
            if name not in {"role", "id", "type", "tool_call_id", "image_url", "source"}:
                yield from _texts(each, deep - 1)
