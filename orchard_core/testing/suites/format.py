"""The contract suite of dataset formats."""

from __future__ import annotations

import json
import shutil
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from orchard_core.errors import (
    DatasetCorrupt,
    DatasetError,
    DatasetExists,
    DatasetNotFound,
    FormatUnsupported,
)
from orchard_core.formats.contract import DatasetFormat, Exemplary
from orchard_core.testing.suites.format_rows import awkward_rows, chat, masked_row, plain_rows, row, said
from orchard_core.types.dataset import DatasetRow

_CUTS = 24
"""Places at which a file is cut or changed."""
_MANY = 1200
"""Rows of a long file."""
_LONG = 20_000
"""Characters of each of them."""


class FormatSuite:
    """Subclasses give the fixture `dataset_format`; one that is only read needs `example` too, unless the
    format offers `example(into)` itself."""

    file_name: ClassVar[str] = "rows"
    """What the file or directory is called, where the format cares about endings."""

    @pytest.fixture
    def rows(self, dataset_format: DatasetFormat, tmp_path: Path) -> list[DatasetRow]:
        """Rows that the format holds: by default those of ours that it does not refuse, one at a time."""
        held = []
        for number, item in enumerate(plain_rows() if dataset_format.writes else ()):
            try:
                dataset_format.write([item], tmp_path / f"tried-{number}" / self.file_name)
            except FormatUnsupported:
                continue
            held.append(item)
        return held

    @pytest.fixture
    def example(self, dataset_format: DatasetFormat, rows: list[DatasetRow], tmp_path: Path) -> Path:
        """A file or directory of it with at least one row."""
        folder = tmp_path / "example"
        folder.mkdir()
        if dataset_format.writes:
            path = folder / self.file_name
            dataset_format.write(rows, path)
            return path
        if isinstance(dataset_format, Exemplary):
            return dataset_format.example(folder)
        pytest.skip("a format that is only read needs an example: give it `example(into: Path) -> Path`")

    @pytest.fixture
    def target(self, dataset_format: DatasetFormat, tmp_path: Path) -> Path:
        """Where to write."""
        if not dataset_format.writes:
            pytest.skip("it is only read, and says so")
        return tmp_path / self.file_name

    def test_it_is_what_the_contract_names(self, dataset_format: DatasetFormat) -> None:
        """Users choose it by name: name and `writes` are there and stay the same."""
        assert isinstance(dataset_format, DatasetFormat)
        assert dataset_format.name
        assert isinstance(dataset_format.writes, bool)
        assert (dataset_format.name, dataset_format.writes) == (dataset_format.name, dataset_format.writes)

    def test_what_it_reads_it_recognises(self, dataset_format: DatasetFormat, example: Path) -> None:
        """Users name a file and no format: say yes to one's own files."""
        assert dataset_format.recognises(example)

    def test_other_files_are_not_recognised(self, dataset_format: DatasetFormat, tmp_path: Path) -> None:
        """Every format is asked about every file: say no, never raise."""
        others = {
            "empty": b"",
            "text.txt": b"hello\n",
            "noise": bytes(range(256)) * 40,
            "half.json": b'{"mess',
        }
        for name, data in others.items():
            (tmp_path / name).write_bytes(data)
            assert not dataset_format.recognises(tmp_path / name), name
        (tmp_path / "folder").mkdir()
        assert not dataset_format.recognises(tmp_path / "folder")
        assert not dataset_format.recognises(tmp_path / "no such file")

    def test_rows_are_sound(self, dataset_format: DatasetFormat, example: Path) -> None:
        """Masks lie on answers, counts are right, ids are unique: trainers and mixes rely on it."""
        rows = list(dataset_format.read(example))
        assert rows
        assert len({row.id for row in rows}) == len(rows)
        for item in rows:
            _assert_sound(item)

    def test_reading_again_gives_the_same(self, dataset_format: DatasetFormat, example: Path) -> None:
        """A mix is repeatable only when ids and rows are: draw nothing, read no clock."""
        assert list(dataset_format.read(example)) == list(dataset_format.read(example))

    def test_a_file_that_moved_gives_the_same(
        self, dataset_format: DatasetFormat, example: Path, tmp_path: Path
    ) -> None:
        """Rows must not depend on the directory that a file lies in."""
        moved = tmp_path / "moved" / example.name
        moved.parent.mkdir()
        before = list(dataset_format.read(example))
        shutil.move(example, moved)
        assert list(dataset_format.read(moved)) == before

    def test_a_missing_path_is_a_typed_error(self, dataset_format: DatasetFormat, tmp_path: Path) -> None:
        """A misspelt path is the user's to mend: raise DatasetNotFound."""
        with pytest.raises(DatasetNotFound):
            list(dataset_format.read(tmp_path / "no such file"))

    def test_a_cut_file_gives_rows_or_names_the_fault(
        self, dataset_format: DatasetFormat, example: Path
    ) -> None:
        """Downloads end early: give the rows before the cut, or raise DatasetCorrupt naming the file."""
        whole = [said(item) for item in dataset_format.read(example)]
        for path in _files(example):
            data = path.read_bytes()
            for place in _places(len(data)):
                path.write_bytes(data[:place])
                read = _read_or_corrupt(dataset_format, example)
                assert len(read) <= len(whole), f"{path.name} cut at byte {place}"
            path.write_bytes(data)

    def test_a_changed_byte_gives_rows_or_names_the_fault(
        self, dataset_format: DatasetFormat, example: Path
    ) -> None:
        """Disks and hands change bytes: any other error than DatasetCorrupt is a crash, and nothing of a bad
        file stays behind for the next."""
        whole = [said(item) for item in dataset_format.read(example)]
        for path in _files(example):
            data = path.read_bytes()
            for place in _places(len(data)):
                for value in (0, 0x22, 0x7D, 0xFF):
                    path.write_bytes(data[:place] + bytes([value]) + data[place + 1 :])
                    _read_or_corrupt(dataset_format, example)
            path.write_bytes(data)
            assert [said(item) for item in dataset_format.read(example)] == whole

    def test_rows_come_back_in_order(
        self, dataset_format: DatasetFormat, rows: list[DatasetRow], target: Path
    ) -> None:
        """As many as were written, each with its conversation; what holds no conversation is no format."""
        assert len(rows) > 1
        assert dataset_format.write(iter(rows), target) == len(rows)
        assert [said(item) for item in dataset_format.read(target)] == [said(item) for item in rows]

    def test_no_rows_are_no_error(self, dataset_format: DatasetFormat, target: Path) -> None:
        """A filter may leave nothing: write what reads as nothing, or refuse with FormatUnsupported."""
        try:
            assert dataset_format.write([], target) == 0
        except FormatUnsupported:
            assert not target.exists()
            return
        assert list(dataset_format.read(target)) == []

    @pytest.mark.parametrize("given", awkward_rows(), ids=lambda item: item.id)
    def test_awkward_texts_come_back_or_are_refused(
        self, dataset_format: DatasetFormat, target: Path, given: DatasetRow
    ) -> None:
        """A text that is changed on the way is another training example: keep it, or FormatUnsupported."""
        try:
            dataset_format.write([given], target)
        except FormatUnsupported:
            assert not target.exists()
            return
        assert [said(item) for item in dataset_format.read(target)] == [said(given)]

    def test_a_mask_comes_back_or_is_refused(self, dataset_format: DatasetFormat, target: Path) -> None:
        """A mask that is lost trains what was left out on purpose: keep it, or raise FormatUnsupported."""
        given = masked_row()
        try:
            dataset_format.write([given], target)
        except FormatUnsupported:
            assert not target.exists()
            return
        trained = [text for back in dataset_format.read(target) for text in _trained(back)]
        assert trained == _trained(given)

    def test_nothing_is_overwritten(
        self, dataset_format: DatasetFormat, rows: list[DatasetRow], target: Path
    ) -> None:
        """What is there may be a week's work: raise DatasetExists and touch nothing."""
        target.write_text("precious")
        with pytest.raises(DatasetExists):
            dataset_format.write(rows, target)
        assert target.read_text() == "precious"
        target.unlink()
        target.mkdir()
        (target / "kept").write_text("precious")
        with pytest.raises(DatasetExists):
            dataset_format.write(rows, target)
        assert [path.name for path in target.iterdir()] == ["kept"]

    def test_rows_that_fail_leave_nothing(
        self, dataset_format: DatasetFormat, rows: list[DatasetRow], target: Path
    ) -> None:
        """Half a file looks whole: write beside it, and give it its name at the end."""

        def failing() -> Iterator[DatasetRow]:
            yield from rows
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            dataset_format.write(failing(), target)
        assert not target.exists()
        assert dataset_format.write(rows, target) == len(rows)

    def test_writing_and_reading_stream(self, dataset_format: DatasetFormat, target: Path) -> None:
        """Datasets are larger than memory: hold a few rows at a time, both ways."""
        whole = _MANY * _LONG
        made = (row(n, chat(f"{n} x" * (_LONG // 4))) for n in range(_MANY))
        tracemalloc.start()
        try:
            assert dataset_format.write(made, target) == _MANY
            assert sum(1 for _ in dataset_format.read(target)) == _MANY
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < whole / 2, f"{peak / 1e6:.0f} MB at once for {whole / 1e6:.0f} MB of text"

    def test_one_that_is_only_read_refuses_to_write(
        self, dataset_format: DatasetFormat, tmp_path: Path
    ) -> None:
        """`writes` is a promise in both directions: raise FormatUnsupported before anything is made."""
        if dataset_format.writes:
            pytest.skip("it is written too")
        with pytest.raises(FormatUnsupported):
            dataset_format.write(plain_rows(), tmp_path / self.file_name)
        assert list(tmp_path.iterdir()) == []


def _assert_sound(item: DatasetRow) -> None:
    messages = json.loads(item.messages)
    answers = [message["role"] == "assistant" for message in messages]
    assert len(item.mask) == len(messages)
    assert all(answer for bit, answer in zip(item.mask, answers, strict=True) if bit)
    assert set(item.mask) <= {0, 1}
    assert item.turns == sum(answers)
    assert item.weights == () or len(item.weights) == len(messages)
    assert item.values == () or len(item.values) == item.turns + 1
    assert item.token_count >= 0
    assert isinstance(json.loads(item.tools), list)
    assert DatasetRow.model_validate_json(item.model_dump_json()) == item


def _trained(item: DatasetRow) -> list[object]:
    return [message for message, bit in zip(said(item), item.mask, strict=True) if bit]


def _read_or_corrupt(dataset_format: DatasetFormat, path: Path) -> list[DatasetRow]:
    """Rows before the fault. Anything but a DatasetError, of which a DatasetCorrupt names its file, fails."""
    rows: list[DatasetRow] = []
    named = True
    try:
        rows.extend(dataset_format.read(path))
    except DatasetCorrupt as fault:
        named = bool(fault.path)
    except DatasetError:
        pass
    assert named, "a DatasetCorrupt names its file"
    return rows


def _files(path: Path) -> list[Path]:
    """At most three files that an example consists of."""
    return [path] if path.is_file() else [found for found in sorted(path.rglob("*")) if found.is_file()][:3]


def _places(size: int) -> list[int]:
    return sorted({size * step // _CUTS for step in range(_CUTS)} | {max(0, size - 1)})
