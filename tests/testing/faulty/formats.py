"""Dataset formats with one fault each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchard_core import DatasetExists, DatasetFormat, DatasetRow, FormatUnsupported, load_format
from orchard_core.testing import FormatSuite


class Wrapped:
    """A sound format to break."""

    name = "wrapped"
    writes = True

    def __init__(self) -> None:
        self.inner = load_format("hf:masked")

    def recognises(self, path: Path) -> bool:
        return self.inner.recognises(path)

    def read(self, path: Path) -> Iterator[DatasetRow]:
        return self.inner.read(path)

    def write(self, rows: Iterable[DatasetRow], path: Path) -> int:
        return self.inner.write(rows, path)


def changed(row: DatasetRow, **fields: Any) -> DatasetRow:
    return row.model_copy(update=fields)


class _Faulty(FormatSuite):
    file_name = "rows.jsonl"
    broken: type[Wrapped] = Wrapped

    @pytest.fixture
    def dataset_format(self) -> DatasetFormat:
        return self.broken()


class TestForgetsWrites(_Faulty):
    caught_by = "test_it_is_what_the_contract_names"

    class broken(Wrapped):  # noqa: N801
        name = ""


class TestRecognisesNothing(_Faulty):
    caught_by = "test_what_it_reads_it_recognises"

    class broken(Wrapped):  # noqa: N801
        def recognises(self, path: Path) -> bool:
            return False


class TestRecognisesAll(_Faulty):
    caught_by = "test_other_files_are_not_recognised"

    class broken(Wrapped):  # noqa: N801
        def recognises(self, path: Path) -> bool:
            return True


class TestRaisesWhenAsked(_Faulty):
    caught_by = "test_other_files_are_not_recognised"

    class broken(Wrapped):  # noqa: N801
        def recognises(self, path: Path) -> bool:
            return bool(json.loads(path.read_bytes().splitlines()[0]))


class TestTrainsTheUser(_Faulty):
    caught_by = "test_rows_are_sound"

    class broken(Wrapped):  # noqa: N801
        def read(self, path: Path) -> Iterator[DatasetRow]:
            return (changed(row, mask=(1,) * len(row.mask)) for row in self.inner.read(path))


class TestGivesOneIdToAll(_Faulty):
    caught_by = "test_rows_are_sound"

    class broken(Wrapped):  # noqa: N801
        def read(self, path: Path) -> Iterator[DatasetRow]:
            return (changed(row, id="same") for row in self.inner.read(path))


class TestCountsAnew(_Faulty):
    caught_by = "test_reading_again_gives_the_same"

    class broken(Wrapped):  # noqa: N801
        count = 0

        def read(self, path: Path) -> Iterator[DatasetRow]:
            for row in self.inner.read(path):
                self.count += 1
                yield changed(row, id=f"{self.count}")


class TestNamesRowsByPath(_Faulty):
    caught_by = "test_a_file_that_moved_gives_the_same"

    class broken(Wrapped):  # noqa: N801
        def read(self, path: Path) -> Iterator[DatasetRow]:
            return (changed(row, id=f"{path}:{n}") for n, row in enumerate(self.inner.read(path)))


class TestGivesNothingForNothing(_Faulty):
    caught_by = "test_a_missing_path_is_a_typed_error"

    class broken(Wrapped):  # noqa: N801
        def read(self, path: Path) -> Iterator[DatasetRow]:
            return self.inner.read(path) if path.exists() else iter(())


class TestCrashesOnCutFiles(_Faulty):
    caught_by = "test_a_cut_file_gives_rows_or_names_the_fault"

    class broken(Wrapped):  # noqa: N801
        def read(self, path: Path) -> Iterator[DatasetRow]:
            if path.exists():
                for line in path.read_bytes().splitlines():
                    json.loads(line)
            return self.inner.read(path)


class TestCrashesOnChangedBytes(_Faulty):
    caught_by = "test_a_changed_byte_gives_rows_or_names_the_fault"

    class broken(Wrapped):  # noqa: N801
        def read(self, path: Path) -> Iterator[DatasetRow]:
            if path.exists():
                path.read_text(encoding="utf-8")
            return self.inner.read(path)


class TestTurnsRowsRound(_Faulty):
    caught_by = "test_rows_come_back_in_order"

    class broken(Wrapped):  # noqa: N801
        def read(self, path: Path) -> Iterator[DatasetRow]:
            return iter(list(self.inner.read(path))[::-1])


class TestFailsWithoutRows(_Faulty):
    caught_by = "test_no_rows_are_no_error"

    class broken(Wrapped):  # noqa: N801
        def write(self, rows: Iterable[DatasetRow], path: Path) -> int:
            held = list(rows)
            assert held[0].id
            return self.inner.write(held, path)


class TestStripsTexts(_Faulty):
    caught_by = "test_awkward_texts_come_back_or_are_refused"

    class broken(Wrapped):  # noqa: N801
        def write(self, rows: Iterable[DatasetRow], path: Path) -> int:
            return self.inner.write((self.stripped(row) for row in rows), path)

        def stripped(self, row: DatasetRow) -> DatasetRow:
            said = json.loads(row.messages)
            for message in said:
                message["content"] = message["content"].strip()
            return changed(row, messages=json.dumps(said))


class TestLosesMasks(_Faulty):
    caught_by = "test_a_mask_comes_back_or_is_refused"

    class broken(Wrapped):  # noqa: N801
        def __init__(self) -> None:
            self.inner = load_format("hf", drop_masks=True, facts=False)


class TestOverwrites(_Faulty):
    caught_by = "test_nothing_is_overwritten"

    class broken(Wrapped):  # noqa: N801
        def write(self, rows: Iterable[DatasetRow], path: Path) -> int:
            if path.is_file():
                path.unlink()
            return self.inner.write(rows, path)


class TestLeavesHalf(_Faulty):
    caught_by = "test_rows_that_fail_leave_nothing"

    class broken(Wrapped):  # noqa: N801
        def write(self, rows: Iterable[DatasetRow], path: Path) -> int:
            if path.exists():
                raise DatasetExists("there", hint="go away")
            count = 0
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x") as file:
                for row in rows:
                    count += file.write(json.dumps({"messages": json.loads(row.messages)}) + "\n") > 0
            return count


class TestHoldsAll(_Faulty):
    caught_by = "test_writing_and_reading_stream"

    class broken(Wrapped):  # noqa: N801
        def write(self, rows: Iterable[DatasetRow], path: Path) -> int:
            return self.inner.write(list(rows), path)


class TestWritesAlthoughReadOnly(_Faulty):
    caught_by = "test_one_that_is_only_read_refuses_to_write"

    class broken(Wrapped):  # noqa: N801
        writes = False

        def example(self, into: Path) -> Path:
            self.inner.write([], into / "rows.jsonl")
            return into / "rows.jsonl"

        def write(self, rows: Iterable[DatasetRow], path: Path) -> int:
            path.touch()
            raise FormatUnsupported("it is only read", hint="write hf")
