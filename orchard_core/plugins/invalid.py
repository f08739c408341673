"""What pydantic found wrong with options or a recipe, in words of the user's side of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, get_args

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError


def wrong(cause: ValidationError, kind: type[BaseModel], *, noun: str, of: str = "") -> str:
    """Every wrong field on one line: what is misspelt first, for it is why another is missing.

    `noun` is what the user calls a field, `of` what it is a field of, such as ` of harness react`.
    """
    items = cause.errors(include_url=False, include_input=False)
    places = [item["loc"] for item in items]
    items = [item for item in items if item["type"] != "too_short" or not _within(item["loc"], places)]
    items.sort(key=lambda item: item["type"] != "extra_forbidden")
    return "; ".join(_told(item["type"], item["loc"], item["msg"], kind, noun, of) for item in items)


def _within(place: tuple[int | str, ...], places: Sequence[tuple[int | str, ...]]) -> bool:
    """An entry is wrong: the list is short for want of it, which is nothing to tell."""
    return any(len(other) > len(place) and other[: len(place)] == place for other in places)


def _told(
    fault: str, place: tuple[int | str, ...], message: str, kind: type[BaseModel], noun: str, of: str
) -> str:
    name = ".".join(str(part) for part in place)
    if fault == "missing":
        return f"{noun} {name!r}{of} is missing"
    if fault == "extra_forbidden":
        close = get_close_matches(str(place[-1]), _fields(kind, place[:-1]), n=1)
        right = ".".join(str(part) for part in (*place[:-1], *close))
        return f"unknown {noun} {name!r}{of}" + (f"; did you mean {right!r}?" if close else "")
    if fault == "model_type":
        names = ", ".join(_fields(kind, place)[:3])
        return f"{noun} {name!r}{of} should be a mapping of fields" + (f", such as {names}" if names else "")
    if fault == "too_short":
        return f"{noun} {name!r}{of} has too few entries"
    said = message.removeprefix("Value error, ").replace("a valid tuple", "a list")
    if said.startswith("Input should "):
        return f"{noun} {name!r}{of} {said.removeprefix('Input ')}"
    return f"{name}: {said}" if name else said


def _fields(kind: Any, place: Sequence[int | str]) -> list[str]:
    """Names of the fields of the record at a place below `kind`; none where there is no record."""
    for part in place:
        if isinstance(part, int):
            continue  # an entry of a list is looked for below the list's own type
        inner = getattr(kind, "model_fields", {}).get(part)
        kind = next(_records(inner.annotation), None) if inner is not None else None
    return list(getattr(kind, "model_fields", {}))


def _records(annotation: Any) -> Iterator[Any]:
    if hasattr(annotation, "model_fields"):
        yield annotation
    for part in get_args(annotation):
        yield from _records(part)
