"""What is written is read as it was, to the letter, or refused: whatever people and models have said."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchard_core import DatasetRow, FormatUnsupported, load_format

from .talks import clean_texts, messages, rows, same

FILES = (
    ("hf:masked", "rows.jsonl"),
    ("hf:masked", "rows.parquet"),
    ("atif", "rows"),
    ("orchard-swe", "rows.jsonl"),
    ("orchard-swe", "rows.parquet"),
    ("orchard-gui", "rows.jsonl"),
    ("orchard-gui", "rows.parquet"),
    ("miniswe", "rows"),
)
LOST = frozenset({"tokens"})
"""Fields of a row that only ATIF carries."""


def there_and_back(name: str, file: str, given_rows: list[DatasetRow]) -> list[DatasetRow] | None:
    """Written and read; None where the format refuses, and then leaves nothing."""
    made = load_format(name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / file
        try:
            assert made.write(given_rows, path) == len(given_rows)
        except FormatUnsupported:
            assert list(Path(folder).iterdir()) == []
            return None
        return [same(row) for row in made.read(path)]


def unique(drawn: list[DatasetRow]) -> list[DatasetRow]:
    return [same(row.model_copy(update={"id": f"{n}", "rollout": f"{n}"})) for n, row in enumerate(drawn)]


@pytest.mark.parametrize(("name", "file"), FILES, ids=str)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(drawn=st.lists(rows(messages()), min_size=1, max_size=2))
def test_any_row_comes_back_whole_or_is_refused(name: str, file: str, drawn: list[DatasetRow]) -> None:
    given_rows = unique(drawn)
    back = there_and_back(name, file, given_rows)
    assert back is None or back == given_rows


@pytest.mark.parametrize(("name", "file"), [pair for pair in FILES if "gui" not in pair[0]], ids=str)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(row=rows(messages(clean_texts, pictures=False)))
def test_a_conversation_of_sound_texts_is_never_refused(name: str, file: str, row: DatasetRow) -> None:
    assert there_and_back(name, file, [row]) == [same(row)]


@pytest.mark.parametrize("file", ["rows.jsonl", "rows.parquet"])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(row=rows(messages(clean_texts, with_calls=False)))
def test_pictures_travel_in_their_own_column(file: str, row: DatasetRow) -> None:
    assert there_and_back("orchard-gui", file, [row]) == [same(row)]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(row=rows(messages()))
def test_json_lines_hold_everything(row: DatasetRow) -> None:
    assert there_and_back("hf:masked", "rows.jsonl", [row]) == [same(row)]
