"""What the published columns have no place for: kept beside the messages, and put back on import.

A message is a role, a text and, in `swe`, calls. Content of several parts becomes one text, a picture the
mark `<image>` in it; how the parts were cut, and members such as reasoning, are told in the metadata.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchard_core.errors import FormatUnsupported
from orchard_core.formats.conversation import Fields, content_text
from orchard_core.formats.fault import Fault
from orchard_core.formats.text import a_list, an_object

MARK = "<image>"
"""Where a picture stood."""


@dataclass(slots=True, kw_only=True)
class Taken:
    """Messages of plain texts, and what was taken out of them."""

    messages: list[Fields] = field(default_factory=list)
    """With the members that the columns have."""
    beside: dict[str, Fields] = field(default_factory=dict)
    """By the message's place: `parts` and `members`."""
    images: list[str] = field(default_factory=list)
    """URLs of the pictures, in order."""

    @property
    def told(self) -> Fields:
        """What to say in the metadata."""
        return {"beside": self.beside} if self.beside else {}


def take_out(messages: Sequence[Fields], members: Sequence[str]) -> Taken:
    """Messages with these members and texts for content."""
    taken = Taken()
    for place, message in enumerate(messages):
        plain = {key: message.get(key) for key in members}
        beside: Fields = {}
        rest = {key: value for key, value in message.items() if key not in members}
        if rest:
            beside["members"] = rest
        if isinstance(message.get("content"), list):
            plain["content"], beside["parts"] = _flat(message["content"], taken.images)
        taken.messages.append(plain)
        if beside:
            taken.beside[str(place)] = beside
    _refuse_new_pairs(taken.messages)
    return taken


def _refuse_new_pairs(messages: Sequence[Fields]) -> None:
    """Raises FormatUnsupported where parts that end and begin with half a surrogate pair made a whole one."""
    if any(
        not text.isascii() and _joined(text) for text in (content_text(one["content"]) for one in messages)
    ):
        raise FormatUnsupported(
            "a message has parts that meet in halves of a surrogate pair, which one text cannot hold",
            hint="write hf as JSON lines",
        )


_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def _joined(text: str) -> bool:
    return _PAIR.search(text) is not None


def put_back(messages: Sequence[Fields], beside: Any, images: Sequence[str]) -> list[Fields]:
    """The messages as they were. Without `beside`, each `<image>` becomes a picture where there are as many
    marks as pictures; else all pictures are put before the last user message's text. Raises Fault."""
    told = an_object(beside, "beside") if beside is not None else _guessed(messages, len(images))
    left = list(images)
    restored = []
    for place, message in enumerate(messages):
        kept = an_object(told.get(str(place), {}), f"beside.{place}")
        whole = {**message, **an_object(kept.get("members", {}), f"beside.{place}.members")}
        if "before" in kept:
            whole["content"] = [*_pictures(left), {"type": "text", "text": message.get("content") or ""}]
        elif "parts" in kept:
            whole["content"] = _parts(
                message.get("content"), kept["parts"], left, f"messages[{place}].content"
            )
        restored.append(whole)
    if left:
        raise Fault(f"it has {len(left)} pictures more than the messages have places for", field="images")
    return restored


def _flat(parts: Sequence[Any], images: list[str]) -> tuple[str, list[Any]]:
    """One text of several parts, and each part's length or, of a picture, what else is said of it."""
    texts: list[str] = []
    cuts: list[Any] = []
    for part in parts:
        url = _url(part)
        if url is not None:
            images.append(url)
            texts.append(MARK)
            rest = {key: value for key, value in part["image_url"].items() if key != "url"}
            cuts.append({"image": rest})
        elif part.get("type") == "text" and set(part) == {"type", "text"} and isinstance(part["text"], str):
            texts.append(part["text"])
            cuts.append(len(part["text"]))
        else:
            cuts.append({"part": part})
    return "".join(texts), cuts


def _parts(content: Any, cuts: Any, left: list[str], where: str) -> list[Fields]:
    text = content or ""
    parts: list[Fields] = []
    at = 0
    for cut in a_list(cuts, where):
        if isinstance(cut, int) and not isinstance(cut, bool) and 0 <= cut <= len(text) - at:
            parts.append({"type": "text", "text": text[at : at + cut]})
            at += cut
        elif isinstance(cut, dict) and "image" in cut and text.startswith(MARK, at):
            if not left:
                raise Fault("it has more places for pictures than there are pictures", field=where)
            parts.append({"type": "image_url", "image_url": {"url": left.pop(0), **cut["image"]}})
            at += len(MARK)
        elif isinstance(cut, dict) and isinstance(cut.get("part"), dict):
            parts.append(cut["part"])
        else:
            raise Fault("its text was changed since its parts were noted", field=where)
    if at != len(text):
        raise Fault("its text was changed since its parts were noted", field=where)
    return parts


def _guessed(messages: Sequence[Fields], count: int) -> Mapping[str, Any]:
    """Where the pictures of somebody else's file stand."""
    if not count:
        return {}
    texts = [(place, message.get("content") or "") for place, message in enumerate(messages)]
    if sum(text.count(MARK) for _, text in texts) == count:
        return {str(place): {"parts": _cuts(text)} for place, text in texts if MARK in text}
    users = [place for place, message in enumerate(messages) if message["role"] == "user"]
    return {str(users[-1]): {"before": True}} if users else {}


def _pictures(left: list[str]) -> list[Fields]:
    pictures = [{"type": "image_url", "image_url": {"url": url}} for url in left]
    left.clear()
    return pictures


def _cuts(text: str) -> list[Any]:
    cuts: list[Any] = []
    for number, piece in enumerate(text.split(MARK)):
        if number:
            cuts.append({"image": {}})
        if piece:
            cuts.append(len(piece))
    return cuts


def _url(part: Any) -> str | None:
    """The URL of a picture's part."""
    if not isinstance(part, dict) or part.get("type") != "image_url" or set(part) != {"type", "image_url"}:
        return None
    held = part["image_url"]
    return held["url"] if isinstance(held, dict) and isinstance(held.get("url"), str) else None


_MAGIC = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}


def image_bytes(url: str) -> Fields:
    """A picture as `datasets` holds it: its bytes, or the place it is at."""
    head, comma, data = url.partition(",")
    if head.startswith("data:") and head.endswith(";base64") and comma:
        try:
            raw = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        if raw and image_url({"bytes": raw}, "") == url:
            return {"bytes": raw, "path": None}
    return {"bytes": None, "path": url}


def image_url(image: Any, where: str) -> str:
    """The URL of a picture that `datasets` or JSON holds. Raises Fault."""
    if isinstance(image, str):
        return image
    held = an_object(image, where)
    raw = held.get("bytes")
    if isinstance(raw, bytes) and raw:
        kind = next((name for magic, name in _MAGIC.items() if raw.startswith(magic)), "png")
        return f"data:image/{kind};base64,{base64.b64encode(raw).decode()}"
    if isinstance(held.get("path"), str):
        return str(held["path"])
    raise Fault("a picture has neither bytes nor a path", field=where)
