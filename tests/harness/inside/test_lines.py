"""Bytes as lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchard_core import json_object
from orchard_core.harness.inside.lines import Lines


@given(st.lists(st.sampled_from([b"a", b"\n", b"bc\n", b"\nd", b""]), max_size=20))
def test_however_it_is_cut_the_lines_are_the_same(pieces: list[bytes]) -> None:
    lines = Lines(line_bytes=100, tail_bytes=3)
    found = [line for piece in pieces for line in lines.feed(piece)] + list(lines.end())
    whole = b"".join(pieces)
    expected = whole.split(b"\n")
    assert found == (expected if expected[-1] else expected[:-1])
    assert (lines.size, lines.tail) == (len(whole), whole[-3:])


@pytest.mark.parametrize("line", [b"", b"hello", b"[1]", b"{", b"{\xff}", b"3", b'{"a":' * 100_000])
def test_a_line_that_is_no_json_object_is_none(line: bytes) -> None:
    assert json_object(line) is None


def test_a_json_object_is_read() -> None:
    assert json_object(b' {"a": 1}\r') == {"a": 1}
