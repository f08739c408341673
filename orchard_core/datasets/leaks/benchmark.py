"""A named set of tasks that is to stay unseen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from orchard_core.datasets.similar.tasks import TaskText, task_of, text_of
from orchard_core.errors import ConfigError, DatasetCorrupt
from orchard_core.plugins.lookup import descriptors, load_taskset
from orchard_core.types.plugin import PluginKind

TEXTS = ("text", "instruction", "task_text", "problem_statement", "prompt", "question", "task", "intent")
"""Members of a JSON line that may hold the text, the first one found."""
IDS = ("id", "task_id", "instance_id", "name")
"""Members that may hold the id."""
_FILES = {".txt", ".jsonl", ".ndjson"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """What a row is checked against."""

    name: str
    """As the user named it."""
    tasks: tuple[TaskText, ...]
    """Its tasks, each once."""
    notes: tuple[str, ...] = ()
    """What of it could not be read, a sentence each."""


def read_benchmark(spec: str) -> Benchmark:
    """A benchmark by what the user wrote: a task set such as `claw-bench` or `harbor:PATH`; a file of texts,
    one a line (`.txt`) or a JSON string or object a line (`.jsonl`); or anything that `read_rows` reads.

    A name that a task set has is that task set; write `./claw-bench` for a path of that name. Raises
    ConfigError for what is none of these or holds no task, DatasetCorrupt for a file that cannot be read, and
    what the task set raises.
    """
    path = Path(spec)
    if spec.partition(":")[0] in {known.name for known in descriptors(PluginKind.TASKSET)}:
        found = _of_taskset(spec)
    elif path.suffix in _FILES and path.is_file() and not _holds_rows(path):
        found = Benchmark(name=spec, tasks=tuple(_of_lines(path, spec)))
    elif path.exists():
        found = _of_rows(path, spec)
    else:
        raise _unknown(spec)
    if not found.tasks:
        raise ConfigError(
            f"the benchmark {spec} has no task, so nothing could be a leak",
            hint="; ".join(found.notes) or "check what it names",
        )
    return found


def _of_taskset(spec: str) -> Benchmark:
    taskset = load_taskset(spec)
    tasks = tuple(text_of(task) for task in taskset.tasks())
    return Benchmark(name=spec, tasks=tasks, notes=tuple(taskset.problems()))


def _of_rows(path: Path, spec: str) -> Benchmark:
    from orchard_core.datasets.reading import read_rows

    found = {task_of(row): None for row in read_rows(path)}
    bare = sum(1 for task in found if not task.text)
    notes = (f"{bare} of its tasks tell no instruction and are checked by id alone",) if bare else ()
    return Benchmark(name=spec, tasks=tuple(found), notes=notes)


def _holds_rows(path: Path) -> bool:
    """Whether a JSON lines file holds conversations, not texts."""
    with path.open("rb") as file:
        first = file.readline()
    try:
        told = orjson.loads(first)
    except ValueError:
        return False
    return isinstance(told, dict) and "messages" in told


def _of_lines(path: Path, spec: str) -> Iterator[TaskText]:
    plain = path.suffix == ".txt"
    with path.open("rb") as file:
        for number, raw in enumerate(file):
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError as cause:
                raise DatasetCorrupt(
                    f"is no UTF-8: {cause.reason} at byte {cause.start} of the line",
                    path=str(path),
                    row=number,
                    hint="save the file as UTF-8",
                ) from cause
            if line.strip():
                known = (line.strip(), "") if plain else _of_json(line, path, number)
                yield TaskText(taskset=spec, task=known[1] or f"line-{number + 1}", text=known[0])


def _of_json(line: str, path: Path, number: int) -> tuple[str, str]:
    """Text and id of a JSON line."""
    try:
        told = orjson.loads(line)
    except ValueError as cause:
        raise DatasetCorrupt(
            f"is no JSON: {cause}", path=str(path), row=number, hint="write a JSON string or object a line"
        ) from cause
    if isinstance(told, str):
        return told, ""
    if isinstance(told, dict):
        texts = [told[name] for name in TEXTS if isinstance(told.get(name), str)]
        ids = [str(told[name]) for name in IDS if isinstance(told.get(name), str | int)]
        if texts:
            return texts[0], ids[0] if ids else ""
    raise DatasetCorrupt(
        "holds no text",
        path=str(path),
        row=number,
        hint=f"write a JSON string, or an object with one of: {', '.join(TEXTS)}",
    )


def _unknown(spec: str) -> ConfigError:
    known = ", ".join(sorted(each.name for each in descriptors(PluginKind.TASKSET)))
    return ConfigError(
        f"{spec!r} names no benchmark: no task set and no path has this name",
        hint=f"give a task set ({known}), a dataset, or a .txt or .jsonl file with one text a line",
    )
