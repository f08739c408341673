"""Content parts of input items as parts of chat messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from orchard_core.gateway.json_text import JsonFault

_TEXTS = ("input_text", "output_text", "text")


def chat_content(content: object, where: str, dropped: Counter[str]) -> str | list[dict[str, Any]]:
    """A string, or parts; one part that is text becomes a string. Raises JsonFault."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if not isinstance(content, list):
        raise JsonFault(f"`{where}` must be a string or an array")
    parts = [part for value in content if (part := _part(value, where, dropped)) is not None]
    if len(parts) == 1 and parts[0]["type"] == "text":
        return str(parts[0]["text"])
    return parts or ""


def texts(content: object, where: str, dropped: Counter[str]) -> list[str]:
    """The texts alone, where chat takes nothing else. Raises JsonFault."""
    said = chat_content(content, where, dropped)
    if isinstance(said, str):
        return [said]
    dropped.update(f"{where}.{part['type']}" for part in said if part["type"] != "text")
    return [part["text"] for part in said if part["type"] == "text"]


def _part(value: object, where: str, dropped: Counter[str]) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        raise JsonFault(f"each part of `{where}` must be an object")
    kind = value.get("type")
    if kind in _TEXTS:
        if not isinstance(value.get("text"), str):
            raise JsonFault(f"a part of type `{kind}` needs a `text`")
        count_other(value, ("type", "text"), where, dropped)
        return {"type": "text", "text": value["text"]}
    made = _SHAPES[kind](value) if isinstance(kind, str) and kind in _SHAPES else None
    if made is None:
        dropped[f"{where}.{kind}"] += 1
        return None
    count_other(value, _KNOWN[str(kind)], f"{where}.{kind}", dropped)
    return made


def _image(value: Mapping[str, Any]) -> dict[str, Any] | None:
    if not isinstance(value.get("image_url"), str):
        return None
    image = {"url": value["image_url"]}
    if value.get("detail") is not None:
        image["detail"] = value["detail"]
    return {"type": "image_url", "image_url": image}


def _file(value: Mapping[str, Any]) -> dict[str, Any] | None:
    file = {key: value[key] for key in ("file_data", "file_id", "filename") if value.get(key) is not None}
    return {"type": "file", "file": file} if file.keys() & {"file_data", "file_id"} else None


def _audio(value: Mapping[str, Any]) -> dict[str, Any] | None:
    audio = value.get("input_audio")
    return {"type": "input_audio", "input_audio": audio} if isinstance(audio, dict) else None


_SHAPES = {"input_image": _image, "input_file": _file, "input_audio": _audio}
_KNOWN = {
    "input_image": ("type", "image_url", "detail"),
    "input_file": ("type", "file_data", "file_id", "filename"),
    "input_audio": ("type", "input_audio"),
}


def count_other(value: Mapping[str, Any], kept: tuple[str, ...], where: str, dropped: Counter[str]) -> None:
    """Count each field that says something and is not among those `kept`."""
    for key, inner in value.items():
        if key not in kept and inner is not None and inner != []:
            dropped[f"{where}.{key}"] += 1
