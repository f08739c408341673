"""What each format keeps of a row is what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchard_core import AnswerSpan, DatasetRow, FormatUnsupported, RecordedTokens, VersionSpan, load_format
from orchard_core.testing.suites.format_rows import chat, row, talk
from orchard_core.types.rollout import Attribution, Outcome
from orchard_core.types.sample import SampleLabel

from .talks import PICTURE, Fields, same

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "dataset-formats.md"
_LINE = re.compile(r"^\| `([a-z:-]+)` \| (.*?) \| (.*?) \|$", re.MULTILINE)
_TABLE = PAGE.read_text(encoding="utf-8").partition("| written as |")[2].partition("\n\n")[0]
LOSSES = {name: set(re.findall(r"`(\w+)`", lost)) for name, lost, _ in _LINE.findall(_TABLE)}

TOKENS = RecordedTokens(
    token_ids=(1, 2, 3, 4, 5, 6),
    mask=(0, 1, 1, 0, 0, 1),
    logprobs=(0.0, -0.5, -1.5, 0.0, 0.0, -0.25),
    versions=(VersionSpan(start=0, stop=2, version="7"),),
    answers=(AnswerSpan(message=1, start=1, stop=3), AnswerSpan(message=3, start=5, stop=6)),
)


def full_row(**changes: object) -> DatasetRow:
    """Every field is something else than its default."""
    fields: dict[str, object] = {
        "tokens": TOKENS, "label": SampleLabel.FORK, "tools": '[{"type":"function","function":{"name":"f"}}]',
        "weights": (0.0, 1.0, 0.0, 0.5), "values": (0.1, 0.5, 1.0), "credit": "judge", "token_count": 6,
        "token_count_exact": True, "tags": ("a",), "attempt": 3, "seed": 5, "outcome": Outcome.TRUNCATED,
        "attribution": Attribution.AGENT, "reward": 0.5, "split": "test", "source": "first",
        "provenance": {"run": "r"}, "metadata": {"k": 1}, "mask": (0, 1, 0, 0), "rollout": "other",
    }  # fmt: skip
    return row(4, [*chat("one"), *chat("two")], **{**fields, **changes})


def test_the_row_leaves_no_default() -> None:
    made = full_row()
    left = [name for name, field in DatasetRow.model_fields.items() if getattr(made, name) == field.default]
    assert left == ["schema_version"]


@pytest.mark.parametrize("name", LOSSES)
def test_what_changed_is_what_the_table_says(name: str, tmp_path: Path) -> None:
    whole = {"mask": (0, 1, 0, 1), "weights": ()} if name == "hf" else {}
    given = full_row(**whole)
    made = load_format(name)
    made.write([given], tmp_path / "out")
    back = next(iter(made.read(tmp_path / "out")))
    pair = same(given), same(back)
    changed = {
        field for field in DatasetRow.model_fields if getattr(pair[0], field) != getattr(pair[1], field)
    }
    assert changed == LOSSES[name]


PICTURED: list[Fields] = [{"role": "user", "content": [PICTURE]}, {"role": "assistant", "content": "a dot"}]
REFUSED = {
    "hf": full_row(),
    "hf:tokens": row(0, talk()),
    "atif": row(0, []),
    "orchard-swe": row(0, PICTURED),
    "orchard-gui": row(0, talk()),
}


@pytest.mark.parametrize("name", LOSSES)
def test_what_is_refused_is_what_the_table_says(name: str, tmp_path: Path) -> None:
    rest = {name: text for name, _, text in _LINE.findall(_TABLE)}
    assert (rest[name] != "nothing") == (name in REFUSED)
    if name in REFUSED:
        with pytest.raises(FormatUnsupported):
            load_format(name).write([REFUSED[name]], tmp_path / "out")
        assert list(tmp_path.iterdir()) == []
