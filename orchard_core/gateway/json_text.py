"""Reading JSON by its text, so that what is stored is what was sent and not a re-serialisation.

Values are scanned by the standard library's decoder: it takes lone surrogates, keeps any integer exact and
tells where a value ends, which is what a byte-exact slice needs.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from contextlib import suppress
from json.encoder import encode_basestring_ascii
from typing import Any

import orjson


class JsonFault(ValueError):
    """Text that is not JSON, or not the JSON that was expected; the message is for the sender."""


def _refuse(constant: str) -> float:
    raise JsonFault(f"{constant} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise JsonFault(f"the number {text[:40]} is too large")
    return number


Scan = Callable[[str, int], tuple[Any, int]]
_scan_once: Scan = json.JSONDecoder(parse_constant=_refuse).scan_once  # type: ignore[attr-defined]
_scan_finite: Scan = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite).scan_once  # type: ignore[attr-defined]
"""For what is written anew, where an infinity would become null; slower."""

_space = re.compile(r"[ \t\n\r]*").match
_plain_name = re.compile(r'"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*').match
_after = re.compile(r"[ \t\n\r]*([,}\]])[ \t\n\r]*").match
_non_ascii = re.compile(r"[^\x00-\x7f]+")


def decode(body: bytes) -> str:
    """Text of a JSON body. Surrogates that some encoders write as three raw bytes are let through."""
    try:
        return body.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise JsonFault(f"the body is not UTF-8 (byte {error.start})") from None


def is_utf8(body: bytes) -> bool:
    """Whether the body is UTF-8 as the standard has it (no raw surrogates)."""
    if body.isascii():
        return True
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def ascii_text(text: str) -> str:
    """The same JSON with every non-ASCII character escaped; these stand in strings only."""
    if text.isascii():
        return text
    return _non_ascii.sub(lambda run: encode_basestring_ascii(run[0])[1:-1], text)


def skip(text: str, at: int) -> int:
    """Position of the first character at or after `at` that is not white space."""
    if text[at : at + 1] > " ":
        return at
    match = _space(text, at)
    return match.end() if match else at


def scan(text: str, at: int, once: Scan = _scan_once) -> tuple[Any, int]:
    """The value that starts at `at`, and where it ends. Raises JsonFault."""
    try:
        return once(text, at)
    except StopIteration as stop:
        raise JsonFault(f"a JSON value was expected at character {stop.value}") from None
    except RecursionError:
        raise JsonFault("the JSON is nested too deeply") from None
    except JsonFault:
        raise
    except ValueError as error:
        raise JsonFault(str(error)) from None


def walk_object(text: str, at: int, member: Callable[[str, int], int]) -> int:
    """Visit the object at `at`: `member(key, start)` returns where its value ends. Returns where it ends."""
    if text[at : at + 1] != "{":
        raise JsonFault(f"an object was expected at character {at}")
    at = skip(text, at + 1)
    if text[at : at + 1] == "}":
        return at + 1
    while True:
        key, at = _name(text, at)
        at = member(key, at)
        after = _after(text, at)
        if after is None or after[1] == "]":
            raise JsonFault(f"',' or '}}' was expected at character {at}")
        at = after.end()
        if after[1] == "}":
            return after.end(1)


def walk_array(text: str, at: int, element: Callable[[int], int]) -> int:
    """Visit the array at `at`: `element(start)` returns where it ends. Returns the array's end."""
    if text[at : at + 1] != "[":
        raise JsonFault(f"an array was expected at character {at}")
    at = skip(text, at + 1)
    if text[at : at + 1] == "]":
        return at + 1
    while True:
        at = element(at)
        after = _after(text, at)
        if after is None or after[1] == "}":
            raise JsonFault(f"',' or ']' was expected at character {at}")
        at = after.end()
        if after[1] == "]":
            return after.end(1)


def whole(text: str, end: int) -> None:
    """Raises JsonFault when anything but white space follows `end`."""
    at = skip(text, end)
    if at != len(text):
        raise JsonFault(f"extra data at character {at}")


def _name(text: str, at: int) -> tuple[str, int]:
    """A member's name and where its value starts."""
    plain = _plain_name(text, at)
    if plain is not None:
        return plain[1], plain.end()
    if text[at : at + 1] != '"':
        raise JsonFault(f"a member's name was expected at character {at}")
    key, at = scan(text, at)
    at = skip(text, at)
    if text[at : at + 1] != ":":
        raise JsonFault(f"':' was expected at character {at}")
    return key, skip(text, at + 1)


def loads(data: bytes | str) -> Any:
    """Parse fast where that is safe, else by the standard library. Integers of any size stay what they are.
    Raises JsonFault."""
    if not _may_hold_long_number(data):
        with suppress(orjson.JSONDecodeError):
            return orjson.loads(data)
    text = data if isinstance(data, str) else decode(data)
    value, end = scan(text, skip(text, 0), _scan_finite)
    whole(text, end)
    return value


def _may_hold_long_number(data: bytes | str) -> bool:
    """The fast parser makes floats of integers over 64 bits. Making all digits alike to search for a row of
    them is several times as fast as a pattern."""
    raw = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
    return _LONG in raw.translate(_ALIKE)


_LONG = b"0" * 19
_ALIKE = bytes.maketrans(b"123456789", b"000000000")


def dumps(value: object) -> bytes:
    """Compact JSON; ASCII only, by the standard library, where a lone surrogate or huge integer forces it."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return dumps_ascii(value).encode()


dumps_ascii: Callable[[object], str] = json.JSONEncoder(separators=(",", ":")).encode
"""Compact ASCII-only JSON text of a value."""
