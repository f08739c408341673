"""The `atif` format."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from orchard_core.errors import FormatUnsupported
from orchard_core.formats.atif.document import rows_of, trajectory_of
from orchard_core.formats.atif.images import taken_in
from orchard_core.formats.conversation import Fields
from orchard_core.formats.fault import Fault
from orchard_core.formats.place import must_exist, new_directory, new_file
from orchard_core.formats.text import dumped, parsed_object
from orchard_core.formats.unpacked import head, lines, whole
from orchard_core.types.base import Record
from orchard_core.types.dataset import DatasetRow
from orchard_core.types.sample import SampleLabel

_MARK = b"ATIF-v"
_ENDING = ".atif.json"
_NAMES = (_ENDING, "trajectory.json")
"""Endings of files that can be nothing else."""
_LINES = (".jsonl", ".jsonl.gz", ".jsonl.zst")
_LOOKED_AT = 50
_PER_FOLDER = 1000


class AtifConfig(Record):
    """Options of the format."""

    prompt_ids: bool = False
    """Write the prompt's token ids with every step, as some readers want them; files become quadratic in the
    number of turns."""


class AtifFormat:
    """One trajectory a file (`.json`), one a line (`.jsonl`), or a directory of files with their pictures."""

    name = "atif"
    writes = True

    def __init__(self, config: AtifConfig) -> None:
        self._config = config

    def recognises(self, path: Path) -> bool:
        """By the version that every trajectory names."""
        if not path.is_dir():
            return path.is_file() and _is_atif(path)
        return any(_is_atif(file) for _, file in zip(range(_LOOKED_AT), _jsons(path), strict=False))

    def read(self, path: Path) -> Iterator[DatasetRow]:
        """Of a directory, every trajectory below it by path; other JSON files there are passed over. Raises
        DatasetNotFound and DatasetCorrupt."""
        must_exist(path)
        root = path if path.is_dir() else path.parent
        files = _trajectories(path) if path.is_dir() else [path]
        for file in files:
            yield from _file_rows(file, root)
        if not files:
            raise Fault("no file in it is a trajectory").at(str(path), None)

    def write(self, rows: Iterable[DatasetRow], path: Path) -> int:
        """Raises DatasetExists and FormatUnsupported."""
        if path.name.endswith(".json"):
            return self._write_one(rows, path)
        if path.name.endswith(_LINES):
            return self._write_lines(rows, path)
        with new_directory(path) as folder:
            (folder / "images").mkdir()
            count = 0
            for number, group in enumerate(_rollouts(rows)):
                place = folder / f"{number // _PER_FOLDER:05d}" / f"{number % _PER_FOLDER:03d}{_ENDING}"
                place.parent.mkdir(exist_ok=True)
                place.write_bytes(self._text(group, _saver(folder)))
                count += len(group)
            if not any((folder / "images").iterdir()):
                (folder / "images").rmdir()
            if not count:
                raise FormatUnsupported("there are no rows, and ATIF has no empty trajectory")
            return count

    def _write_one(self, rows: Iterable[DatasetRow], path: Path) -> int:
        with new_file(path) as file:
            written = list(_first_two(_rollouts(rows)))
            if len(written) != 1:
                raise FormatUnsupported(
                    f"a .json file holds one rollout's trajectory; here are {'more' if written else 'none'}",
                    hint="write to a directory (a name without an ending) or to a .jsonl file",
                )
            file.write(self._text(written[0], None))
            return len(written[0])

    def _write_lines(self, rows: Iterable[DatasetRow], path: Path) -> int:
        from orchard_core.formats.sheets import packed

        count = 0
        with new_file(path) as file, packed(file, path.name) as opened:
            for group in _rollouts(rows):
                opened.write(self._text(group, None) + b"\n")
                count += len(group)
        return count

    def _text(self, rows: list[DatasetRow], save: Callable[[str, bytes], str] | None) -> bytes:
        return dumped(trajectory_of(rows, save, prompts=self._config.prompt_ids)).encode()


def _rollouts(rows: Iterable[DatasetRow]) -> Iterator[list[DatasetRow]]:
    """Rows that follow the main one of the same rollout go with it."""
    held: list[DatasetRow] = []
    for row in rows:
        goes_on = held and row.rollout == held[0].rollout and row.label is not SampleLabel.MAIN
        if goes_on and held[0].label is SampleLabel.MAIN:
            held.append(row)
            continue
        if held:
            yield held
        held = [row]
    if held:
        yield held


def _first_two(found: Iterator[list[DatasetRow]]) -> Iterator[list[DatasetRow]]:
    for _, group in zip(range(2), found, strict=False):
        yield group


def _saver(folder: Path) -> Callable[[str, bytes], str]:
    """Puts pictures into the directory, each once."""

    def save(name: str, data: bytes) -> str:
        place = folder / "images" / name
        if not place.exists():
            place.write_bytes(data)
        return f"../images/{name}"

    return save


def _file_rows(file: Path, root: Path) -> Iterator[DatasetRow]:
    number = 0
    place = str(file.relative_to(root))
    try:
        for document in _documents(file):
            _take_in(document, file.parent, root)
            yield from rows_of(document, f"{place}:{number}")
            number += 1
    except Fault as fault:
        raise fault.at(str(file), number) from None


def _documents(file: Path) -> Iterator[Fields]:
    if file.name.endswith(_LINES):
        yield from (parsed_object(line) for line in lines(file))
    else:
        yield parsed_object(whole(file))


def _take_in(document: Fields, folder: Path, root: Path) -> None:
    steps = document.get("steps")
    for step in steps if isinstance(steps, list) else ():
        if isinstance(step, dict):
            taken_in(step, folder, root)
    inside: Any = document.get("subagent_trajectories")
    for below in inside if isinstance(inside, list) else ():
        if isinstance(below, dict):
            _take_in(below, folder, root)


def _trajectories(folder: Path) -> list[Path]:
    return [file for file in _jsons(folder) if file.name.endswith(_NAMES) or _is_atif(file)]


def _jsons(folder: Path) -> Iterator[Path]:
    """By path, one directory after the other."""
    for found in sorted(folder.iterdir()):
        if found.name.startswith(".") or found.is_symlink():
            continue
        if found.is_dir():
            yield from _jsons(found)
        elif found.name.endswith((".json", *_LINES)):
            yield found


def _is_atif(file: Path) -> bool:
    start = head(file)
    if not start.lstrip().startswith(b"{"):
        return False
    return _MARK in start or _MARK in _tail(file)


def _tail(file: Path, size: int = 65536) -> bytes:
    """The last bytes: members come in any order."""
    try:
        with file.open("rb") as opened:
            opened.seek(max(0, opened.seek(0, os.SEEK_END) - size))
            return opened.read()
    except OSError:
        return b""
