"""Rows against benchmarks: by id, digest, text, near-duplicate text and common runs of words."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from orchard_core.datasets.leaks.benchmark import Benchmark, read_benchmark
from orchard_core.datasets.leaks.ngrams import RunIndex
from orchard_core.datasets.leaks.report import Checked, Leak, LeakKind, LeakReport, LeakSettings
from orchard_core.datasets.leaks.said import said
from orchard_core.datasets.similar.arrays import np
from orchard_core.datasets.similar.groups import SLACK, jaccard
from orchard_core.datasets.similar.minhash import SHORT_SHINGLE, SIZE, agreeing, of_hashes
from orchard_core.datasets.similar.tasks import TaskText, set_name, task_of, told_apart
from orchard_core.datasets.similar.words import Words, normal, runs, split
from orchard_core.types.dataset import DatasetRow

_LONG_ID = 12
_SHOWN = 200


class LeakCheck:
    """Benchmarks, ready to be asked about one task after the other."""

    def __init__(self, benchmarks: Sequence[Benchmark], settings: LeakSettings | None = None):
        self.settings = settings or LeakSettings()
        self._against = [_Against(each, self.settings) for each in benchmarks]
        self.benchmarks = tuple(each.checked for each in self._against)
        """What is checked against."""

    @classmethod
    def against(cls, *names: str, settings: LeakSettings | None = None) -> LeakCheck:
        """Of benchmarks by what the user wrote; see `read_benchmark`, and what it raises."""
        return cls([read_benchmark(name) for name in names], settings)

    def task(self, task: TaskText) -> Leak | None:
        """The strongest sign that the task is a benchmark's, None when there is none."""
        found = [leak for each in self._against if (leak := each.task(task))]
        return min(found, key=lambda leak: _ORDER.index(leak.kind), default=None)

    def conversation(self, row: DatasetRow) -> Leak | None:
        """The benchmark task that most of stands in the row's messages, None when none is a leak. Tasks that
        the row's own task set tells apart from the row's do not count."""
        words = split(said(row.messages))
        found = [leak for each in self._against if (leak := each.words(words, task_of(row), "messages"))]
        return max(found, key=lambda leak: leak.share, default=None)

    def row(self, row: DatasetRow) -> Leak | None:
        """By the row's task, and by its conversation where the settings ask for that."""
        leak = self.task(task_of(row))
        if leak is None and self.settings.conversations:
            leak = self.conversation(row)
        return leak.model_copy(update={"row": row.id}) if leak else None


_ORDER = list(LeakKind)


def check_leaks(rows: Iterable[DatasetRow], check: LeakCheck) -> LeakReport:
    """Look at rows as they come. Each distinct task is looked at once; held are a digest and a leak of each,
    and a line for each leaking row."""
    seen: dict[bytes, Leak | None] = {}
    leaks: list[Leak] = []
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007 - the last number is the count
        task = task_of(row)
        name = _name(task)
        if name not in seen:
            seen[name] = check.task(task)
        leak = seen[name]
        if leak is None and check.settings.conversations:
            leak = check.conversation(row)
        if leak is not None:
            leaks.append(leak.model_copy(update={"row": row.id}))
    return LeakReport(
        benchmarks=check.benchmarks, settings=check.settings, rows=count, tasks=len(seen), leaks=tuple(leaks)
    )


def _name(task: TaskText) -> bytes:
    told = "\0".join((task.taskset, task.task, task.digest, task.text))
    return hashlib.blake2b(told.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class _Against:
    """One benchmark."""

    def __init__(self, benchmark: Benchmark, settings: LeakSettings):
        self._name = benchmark.name
        self._settings = settings
        self._tasks = benchmark.tasks
        self._by_key = {(set_name(each.taskset), each.task): each for each in benchmark.tasks if each.task}
        self._by_id = {each.task: each for each in benchmark.tasks if _specific(each.task)}
        self._by_digest = {each.digest: each for each in benchmark.tasks if each.digest}
        self._by_text: dict[str, list[TaskText]] = {}
        for each in benchmark.tasks:
            if words := normal(each.text):
                self._by_text.setdefault(words, []).append(each)
        self._texts = [split(words) for words in self._by_text]
        self._having = list(self._by_text.values())
        self._shingles = [np.unique(runs(words, SHORT_SHINGLE)) for words in self._texts]
        self._signatures = np.zeros((len(self._texts), SIZE), np.uint8)
        for place, shingles in enumerate(self._shingles):
            self._signatures[place] = np.frombuffer(of_hashes(shingles), np.uint8)
        self._runs = self._indexed()
        self.checked = Checked(
            name=benchmark.name, tasks=len(benchmark.tasks), notes=tuple(self._notes(benchmark))
        )

    def task(self, task: TaskText) -> Leak | None:
        """The strongest sign."""
        named = self._by_key.get((set_name(task.taskset), task.task)) or self._by_id.get(task.task)
        if named:
            return self._leak(task, named, LeakKind.ID)
        if task.digest in self._by_digest:
            return self._leak(task, self._by_digest[task.digest], LeakKind.DIGEST)
        words = split(task.text)
        if not len(words):
            return None
        whole = words.run(0, len(words))
        same = self._other(self._by_text.get(whole, ()), task)
        if same:
            return self._leak(task, same, LeakKind.TEXT, text=whole)
        return self._near(words, task) or self.words(words, task, "task")

    def words(self, words: Words, task: TaskText, where: str) -> Leak | None:
        """The benchmark task that most of stands in the words, in runs."""
        best = None
        for index in self._runs:
            for found in index.contained(words):
                if found.share < self._settings.share or (best and best.share >= found.share):
                    continue
                if whose := self._other(self._having[found.text], task):
                    text = self._texts[found.text].run(found.first, found.stop)
                    best = self._leak(task, whose, LeakKind.WORDS, share=found.share, text=text, where=where)
        return best

    def _near(self, words: Words, task: TaskText) -> Leak | None:
        near = self._settings.near
        if near is None or not self._texts:
            return None
        shingles = np.unique(runs(words, SHORT_SHINGLE))
        own = np.frombuffer(of_hashes(shingles), np.uint8)
        best, resemblance = None, near
        for place in np.flatnonzero(agreeing(own, self._signatures) >= near - SLACK).tolist():
            found = jaccard(self._shingles[place], shingles)
            if found >= resemblance and (whose := self._other(self._having[place], task)):
                best, resemblance = (place, whose), found
        if best is None:
            return None
        text = self._texts[best[0]]
        return self._leak(task, best[1], LeakKind.NEAR, share=resemblance, text=text.run(0, len(text)))

    def _other(self, having: Sequence[TaskText], task: TaskText) -> TaskText | None:
        """The first that the task's own set does not tell apart from it."""
        return next((each for each in having if not told_apart(each, task)), None)

    def _leak(
        self,
        task: TaskText,
        other: TaskText,
        kind: LeakKind,
        *,
        share: float = 1.0,
        text: str = "",
        where: str = "task",
    ) -> Leak:
        return Leak(
            taskset=task.taskset,
            task=task.task,
            benchmark=self._name,
            benchmark_task=other.task,
            kind=kind,
            share=share,
            where=where,
            text=text[:_SHOWN],
        )

    def _indexed(self) -> list[RunIndex]:
        """One index for the long texts and one for the short."""
        asked = self._settings
        sizes = [len(words) for words in self._texts]
        long = [place for place, size in enumerate(sizes) if size >= 2 * asked.words]
        short = [p for p, size in enumerate(sizes) if asked.short_words <= size < 2 * asked.words]
        return [
            RunIndex(self._texts, places, length, asked.common)
            for places, length in ((long, asked.words), (short, asked.short_words))
            if places
        ]

    def _notes(self, benchmark: Benchmark) -> Iterable[str]:
        yield from benchmark.notes
        without = sum(
            not any(index.known(place) for index in self._runs) for place in range(len(self._texts))
        )
        if without:
            yield (
                f"{without} of its {len(self._texts)} texts are too short or have no words of their own: "
                "they are found as a whole, not in parts"
            )


def _specific(name: str) -> bool:
    """Whether an id says something outside its task set: `astropy__astropy-12907` does, `task-1` does not."""
    return len(name) >= _LONG_ID and any(letter.isdigit() for letter in name)
