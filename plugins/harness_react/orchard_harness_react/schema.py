"""The part of JSON Schema that tool definitions use, checked with messages a model can act upon.

Known: type, enum, const, required, properties, additionalProperties, items, anyOf, oneOf, allOf, minimum,
maximum, minItems, maxItems, minLength, maxLength and local $ref. Anything else is left to the tool itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pydantic import JsonValue

Schema = Mapping[str, JsonValue]

_DEPTH = 64
"""Schemas nested deeper (or a $ref that goes in a circle) are not followed."""


def mismatch(value: JsonValue, schema: Schema) -> str:
    """The first thing wrong with the value, with its place; empty when it fits."""
    return next(_problems(value, dict(schema), schema, "", 0), "")


def _problems(value: JsonValue, schema: JsonValue, root: Schema, at: str, depth: int) -> Iterator[str]:
    if schema is False:
        yield f"{_place(at)} is not allowed"
    if not isinstance(schema, Mapping) or depth > _DEPTH:
        return
    if isinstance(ref := schema.get("$ref"), str):
        yield from _problems(value, _resolved(ref, root), root, at, depth + 1)
    yield from _wrong_type(value, schema.get("type"), at)
    yield from _wrong_choice(value, schema, at)
    yield from _out_of_bounds(value, schema, at)
    yield from _wrong_combination(value, schema, root, at, depth)
    if isinstance(value, dict):
        yield from _wrong_members(value, schema, root, at, depth)
    if isinstance(value, list) and (items := schema.get("items")) is not None:
        for place, item in enumerate(value):
            yield from _problems(item, items, root, f"{at}[{place}]", depth + 1)


def _wrong_type(value: JsonValue, kind: JsonValue, at: str) -> Iterator[str]:
    kinds = [kind] if isinstance(kind, str) else kind if isinstance(kind, list) else []
    known = [name for name in kinds if isinstance(name, str) and name in _TYPES]
    if known and not any(_TYPES[name](value) for name in known):
        yield f"{_place(at)} must be {_article(' or '.join(known))}, and is {_article(_name(value))}"


def _wrong_choice(value: JsonValue, schema: Schema, at: str) -> Iterator[str]:
    choices = schema.get("enum")
    if isinstance(choices, list) and value not in choices:
        yield f"{_place(at)} must be one of {', '.join(repr(choice) for choice in choices)}"
    if "const" in schema and value != schema["const"]:
        yield f"{_place(at)} must be {schema['const']!r}"


def _out_of_bounds(value: JsonValue, schema: Schema, at: str) -> Iterator[str]:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        least, most, measure = "minimum", "maximum", float(value)
    elif isinstance(value, str):
        least, most, measure = "minLength", "maxLength", len(value)
    elif isinstance(value, list):
        least, most, measure = "minItems", "maxItems", len(value)
    else:
        return
    low, high = schema.get(least), schema.get(most)
    if isinstance(low, (int, float)) and measure < low:
        yield f"{_place(at)} is below its {least} of {low}"
    if isinstance(high, (int, float)) and measure > high:
        yield f"{_place(at)} is above its {most} of {high}"


def _wrong_combination(value: JsonValue, schema: Schema, root: Schema, at: str, depth: int) -> Iterator[str]:
    every = schema.get("allOf")
    for part in every if isinstance(every, list) else ():
        yield from _problems(value, part, root, at, depth + 1)
    for key in ("anyOf", "oneOf"):
        options = schema.get(key)
        if isinstance(options, list) and options:
            faults = [next(_problems(value, option, root, at, depth + 1), "") for option in options]
            if all(faults):
                yield " or ".join(dict.fromkeys(faults))


def _wrong_members(
    value: Mapping[str, JsonValue], schema: Schema, root: Schema, at: str, depth: int
) -> Iterator[str]:
    required, properties = schema.get("required"), schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    for name in required if isinstance(required, list) else ():
        if name not in value:
            yield f"{_place(f'{at}.{name}')} is missing"
    for name, member in value.items():
        below = f"{at}.{name}"
        if name in known:
            yield from _problems(member, known[name], root, below, depth + 1)
        elif schema.get("additionalProperties") is False:
            yield f"{_place(below)} is unknown (known: {', '.join(known) or 'none'})"
        else:
            yield from _problems(member, schema.get("additionalProperties"), root, below, depth + 1)


def _resolved(ref: str, root: Schema) -> JsonValue:
    """What a local reference such as `#/$defs/Point` points at; True, which allows all, when nothing."""
    found: JsonValue = dict(root)
    for part in ref.removeprefix("#").strip("/").split("/"):
        if part and isinstance(found, dict):
            found = found.get(part.replace("~1", "/").replace("~0", "~"), True)
    return found if ref.startswith("#") else True


_TYPES: Mapping[str, Callable[[JsonValue], bool]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: (
        not isinstance(value, bool)
        and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
    ),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}


def _name(value: JsonValue) -> str:
    return next(name for name, fits in _TYPES.items() if fits(value))


def _article(kind: str) -> str:
    if kind == "null":
        return kind
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _place(at: str) -> str:
    return f"`{at.lstrip('.')}`" if at else "the value"
