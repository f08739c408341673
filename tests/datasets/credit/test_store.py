"""A directory of credits: durable line by line, cut at any byte, never mixed, never overwritten."""

from __future__ import annotations

import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from orchard_core import Credit, open_credits
from orchard_core.datasets.credit.head import CreditHead, credit_directory
from orchard_core.datasets.credit.rules import failed_credit, resolved_credit
from orchard_core.datasets.credit.writer import CreditWriter
from orchard_core.errors import ConfigError, DatasetCorrupt, DatasetError, DatasetLocked, DatasetNotFound

from .making import make_credit

HEAD = CreditHead(estimator="judge", settings={"judge": "m", "epsilon": 0.05, "params": {"temperature": 0}})
CREDITS = [
    make_credit("one"),
    resolved_credit("two", estimator="judge", turns=3),
    failed_credit("three", estimator="judge", turns=2, error="it said \u201cno\u201d"),
]


def write(root: Path, found: list[Credit], head: CreditHead = HEAD) -> None:
    with CreditWriter.open(root, head) as writer:
        for credit in found:
            writer.add(credit)


def seal(body: bytes) -> bytes:
    """A line whose checksum holds, whatever it says."""
    return b'%s,"crc":"%08x"}\n' % (body[:-1], zlib.crc32(body[:-1]))


def test_what_was_added_is_read_back_by_rollout(tmp_path: Path) -> None:
    write(tmp_path / "c", CREDITS)
    found = open_credits(tmp_path / "c")
    assert list(found) == CREDITS
    assert found.by_rollout["three"].error == "it said “no”"
    assert found.settings["params"] == {"temperature": 0}
    assert "four" not in found.by_rollout
    with pytest.raises(KeyError):
        found.by_rollout["four"]


def test_a_later_line_of_a_rollout_replaces_an_earlier_one(tmp_path: Path) -> None:
    write(tmp_path, [make_credit("one", (0.1, 0.1)), make_credit("one", (0.1, 0.9))])
    assert [credit.values for credit in open_credits(tmp_path)] == [(0.1, 0.9)]


def test_it_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    with CreditWriter.open(tmp_path, HEAD) as writer:
        writer.add(CREDITS[0])
        assert list(open_credits(tmp_path)) == CREDITS[:1]


def test_a_file_cut_at_any_byte_gives_the_whole_lines_before_and_goes_on(tmp_path: Path) -> None:
    write(tmp_path, CREDITS)
    lines = tmp_path / "credits.jsonl"
    whole = lines.read_bytes()
    ends = [place + 1 for place, byte in enumerate(whole) if byte == 0x0A]
    for cut in range(len(whole)):
        lines.write_bytes(whole[:cut])
        kept = sum(end <= cut for end in ends)
        assert list(open_credits(tmp_path)) == CREDITS[:kept]
        if cut % 41 == 0 or cut in ends:
            write(tmp_path, CREDITS[kept:])
            assert list(open_credits(tmp_path)) == CREDITS


def test_damage_before_a_whole_line_is_an_error_that_names_file_and_row(tmp_path: Path) -> None:
    write(tmp_path, CREDITS)
    lines = tmp_path / "credits.jsonl"
    whole = bytearray(lines.read_bytes())
    whole[30] ^= 1
    lines.write_bytes(whole)
    for broken in (lambda: open_credits(tmp_path), lambda: write(tmp_path, [])):
        with pytest.raises(DatasetCorrupt, match=r"credits\.jsonl, row 0: the line is damaged"):
            broken()
    assert lines.read_bytes() == whole


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        (b'"mask":[1,0,0]', b'"mask":[2,0,0]', "mask"),
        (b'"mask":[1,0,0]', b'"mask":[1,0]', "points"),
        (b'"mask":[1,0,0]', b'"mask":["x",0,0]', "mask.0"),
        (b'"value":0.1', b'"value":7', "points"),
        (b'"value":0.1', b'"value":"NaN"', "points"),
        (b'"segments":[{"start":0,"stop":1}]', b'"segments":[{"start":1,"stop":1}]', "segments"),
        (b'"segments":[{"start":0,"stop":1}]', b'"segments":[{"start":0,"stop":9}]', "segments"),
        (b'"error":""', b'"error":"no"', "mask"),
        (b'"judge"', b'"\xff\xfe"', ""),
    ],
)
def test_a_credit_whose_parts_do_not_fit_is_refused_by_field(
    tmp_path: Path, old: bytes, new: bytes, field: str
) -> None:
    write(tmp_path, [])
    body = make_credit().model_dump_json().encode()
    assert old in body
    (tmp_path / "credits.jsonl").write_bytes(seal(body.replace(old, new, 1)))
    with pytest.raises(DatasetCorrupt) as caught:
        list(open_credits(tmp_path))
    assert (caught.value.row, caught.value.field) == (0, field)


def test_a_field_of_100_mb_is_refused_or_read_and_nothing_is_lost(tmp_path: Path) -> None:
    write(tmp_path, [])
    body = make_credit().model_dump_json().encode()
    huge = body.replace(b'"error":""', b'"wrong":"' + b"x" * 100_000_000 + b'","error":""')
    (tmp_path / "credits.jsonl").write_bytes(seal(huge) + seal(make_credit("two").model_dump_json().encode()))
    found = open_credits(tmp_path).by_rollout
    with pytest.raises(DatasetCorrupt, match=r"row 0, field wrong: Extra inputs") as caught:
        found["one"]
    assert len(str(caught.value)) < 1000
    assert found["two"] == make_credit("two")


def test_lines_and_settings_of_a_newer_orchard_are_refused_with_what_to_do(tmp_path: Path) -> None:
    write(tmp_path, CREDITS[:1])
    line = CREDITS[0].model_dump_json().encode().replace(b'"schema_version":1', b'"schema_version":2')
    (tmp_path / "credits.jsonl").write_bytes(seal(line))
    with pytest.raises(DatasetError, match="newer Orchard") as caught:
        open_credits(tmp_path)
    assert "upgrade" in caught.value.hint
    (tmp_path / "credit.json").write_text('{"schema_version": 2, "new": 1}')
    with pytest.raises(DatasetError, match="newer Orchard"):
        open_credits(tmp_path)


def test_a_damaged_head_names_file_and_field(tmp_path: Path) -> None:
    (tmp_path / "credit.json").write_bytes(b'{"estimator": 3}')
    with pytest.raises(DatasetCorrupt, match=r"credit\.json.*field estimator"):
        open_credits(tmp_path)
    (tmp_path / "credit.json").write_bytes(b"\xff")
    with pytest.raises(DatasetCorrupt, match=r"credit\.json"):
        open_credits(tmp_path)


def test_where_there_are_no_credits_those_nearby_are_named(tmp_path: Path) -> None:
    write(tmp_path / "run" / "credit" / "judge", [])
    with pytest.raises(DatasetNotFound) as caught:
        open_credits(tmp_path / "run")
    assert "credit/judge" in caught.value.hint
    with pytest.raises(DatasetNotFound) as caught:
        open_credits(tmp_path / "nowhere")
    assert "orchard data credit" in caught.value.hint


def test_other_settings_are_refused_with_what_differs(tmp_path: Path) -> None:
    write(tmp_path, CREDITS[:1])
    other = HEAD.model_copy(update={"settings": {**HEAD.settings, "epsilon": 0.1}, "created_at": 9.0})
    with pytest.raises(ConfigError, match=r"epsilon is 0\.05 there, 0\.1 is asked for") as caught:
        write(tmp_path, CREDITS, other)
    assert "--name" in caught.value.hint
    assert list(open_credits(tmp_path)) == CREDITS[:1]


@pytest.mark.parametrize("name", ["credits.jsonl", "branches.jsonl"])
def test_lines_whose_settings_are_gone_are_not_taken_up_under_others(tmp_path: Path, name: str) -> None:
    write(tmp_path, CREDITS)
    (tmp_path / "credit.json").unlink()
    (tmp_path / "credits.jsonl").rename(tmp_path / name)
    before = (tmp_path / name).read_bytes()
    with pytest.raises(DatasetCorrupt, match="it is missing, so nothing says by which settings") as caught:
        write(tmp_path, CREDITS)
    assert f"remove {name}" in caught.value.hint
    assert (tmp_path / name).read_bytes() == before
    (tmp_path / name).unlink()
    write(tmp_path, CREDITS)


def test_only_one_process_writes_at_a_time(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from orchard_core.datasets.credit.head import CreditHead;"
        "from orchard_core.datasets.credit.writer import CreditWriter;"
        f"head = CreditHead.model_validate_json({HEAD.model_dump_json()!r});"
        f"CreditWriter.open(Path({str(tmp_path)!r}), head)"
    )
    with CreditWriter.open(tmp_path, HEAD) as writer:
        with pytest.raises(DatasetLocked, match="is being written by process"):
            CreditWriter.open(tmp_path, HEAD)
        other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert "DatasetLocked" in other.stderr
        writer.close()
        writer.close()
    write(tmp_path, CREDITS)
    assert len(open_credits(tmp_path)) == 3


def test_a_text_with_a_lone_surrogate_is_kept_as_an_escape(tmp_path: Path) -> None:
    write(tmp_path, [failed_credit("one", estimator="judge", turns=1, error="odd \ud800")])
    assert open_credits(tmp_path).by_rollout["one"].error == "odd \\ud800"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "-x", "x" * 200, "a\nb"])
def test_a_name_that_is_no_file_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot name"):
        credit_directory(Path("run"), name)
