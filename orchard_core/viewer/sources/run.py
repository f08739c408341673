"""A run directory, while it is being written too."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import zstandard

from orchard_core.errors import RecordCorrupt
from orchard_core.evals.attempts import Attempts, count_attempts
from orchard_core.evals.html import words
from orchard_core.rollout.store.commit import shard_path
from orchard_core.rollout.store.entry import Finished
from orchard_core.rollout.store.frame import to_json
from orchard_core.rollout.store.run import Run
from orchard_core.rollout.store.state import RunState
from orchard_core.viewer.keys import key_of
from orchard_core.viewer.pieces import Piece
from orchard_core.viewer.sources.contract import Lines
from orchard_core.viewer.sources.credits import CreditShelf
from orchard_core.viewer.sources.journal import JournalTail
from orchard_core.viewer.sources.line import PASSED, Line
from orchard_core.viewer.trace.cutting import Room
from orchard_core.viewer.trace.parts import Trace
from orchard_core.viewer.trace.rollout import ReadRollout, rollout_piece, rollout_trace
from orchard_core.viewer.trace.texts import rollout_texts
from orchard_core.viewer.trace.tokens import SampledToken, call_tokens

LARGEST = 1 << 30
"""Bytes of one unpacked record that is read."""
_KEPT, _KEPT_BYTES = 6, 32 << 20
_HEADER = 24


class RunSource:
    """One run."""

    kind = "run"

    def __init__(self, key: str, run: Run) -> None:
        self._key = key
        self._run = run
        self._journal = JournalTail(run.root / "journal.jsonl")
        self._credits = CreditShelf(run.root)
        self._lock = threading.Lock()
        self._lines: Lines | None = None
        self._attempts: tuple[tuple[object, ...], Sequence[Attempts]] | None = None
        self._rollouts: OrderedDict[tuple[int, int], ReadRollout] = OrderedDict()

    @property
    def key(self) -> str:
        """See Source."""
        return self._key

    @property
    def root(self) -> Path:
        """See Source."""
        return self._run.root

    @property
    def run(self) -> Run:
        """The run itself."""
        return self._run

    @property
    def title(self) -> str:
        """Harness, model and task set."""
        config = self._run.config
        return f"{config.harness_text} · {config.model_text} · {config.taskset}"

    def facts(self) -> Mapping[str, str]:
        """See Source."""
        config, now = self._run.config, self.lines()
        return {
            **line_facts(now),
            "sandbox": config.sandbox,
            "seed": str(config.seed),
            "credit": ", ".join(self._credits.names()) or "none",
        }

    def lines(self) -> Lines:
        """See Source."""
        state, stamp = self._journal.state()
        credited, credit_stamp = self._credits.known()
        whole = (*stamp, credit_stamp)
        with self._lock:
            if self._lines is None or self._lines.stamp != whole:
                self._lines = self._listed(state, credited, whole)
            return self._lines

    def _listed(
        self, state: RunState, credited: Mapping[str, tuple[str, ...]], stamp: tuple[object, ...]
    ) -> Lines:
        names = [name for name in list(state.planned) if name in state.finished]
        lines = [self._line(state, state.finished[name], place, credited) for place, name in enumerate(names)]
        by_key = {line.key: place for place, line in enumerate(lines)}
        return Lines(lines=lines, by_key=by_key, planned=len(state.planned), stamp=stamp)

    def _line(
        self, state: RunState, entry: Finished, place: int, credited: Mapping[str, tuple[str, ...]]
    ) -> Line:
        config, lost = self._run.config, state.lost.get(entry.id)
        spent = entry.spent + lost if lost else entry
        return Line(
            source=self._key,
            key=key_of(entry.id),
            id=entry.id,
            task=entry.task,
            attempt=entry.attempt,
            harness=config.harness_text,
            model=config.model_text,
            taskset=config.taskset,
            outcome=entry.outcome,
            attribution=entry.attribution,
            score=entry.score,
            turns=entry.turns,
            tokens=spent.usage.total,
            cost_usd=spent.cost_usd,
            seconds=state.seconds_of(entry),
            tags=state.planned[entry.id].tags,
            error=entry.error or "",
            credit=credited.get(entry.id, ()),
            number=place,
            mark=f"{entry.shard}:{entry.offset}:{entry.length}:{entry.finished_at}",
        )

    def attempts(self) -> Sequence[Attempts]:
        """Attempts and passes of each task, over everything planned."""
        stamp = self.lines().stamp
        with self._lock:
            if self._attempts is None or self._attempts[0] != stamp:
                state, _ = self._journal.state()
                finished = [entry for name in list(state.planned) if (entry := state.finished.get(name))]
                counted = count_attempts(list(state.planned.values()), finished, threshold=PASSED)
                self._attempts = (stamp, counted)
            return self._attempts[1]

    def trace(self, line: Line, *, first: int = 0, room: Room | None = None, samples: bool = True) -> Trace:
        """See Source."""
        return rollout_trace(
            self.read(line.id), self._credits.of(line.id), first=first, room=room, samples=samples
        )

    def piece(self, line: Line, ref: str) -> Piece | None:
        """See Source."""
        return rollout_piece(self.read(line.id).rollout, ref)

    def tokens(self, line: Line, number: int) -> Sequence[SampledToken]:
        """See Source."""
        return call_tokens(self.read(line.id), number)

    def texts(self, line: Line) -> Iterator[tuple[int, str]]:
        """See Source."""
        entry = self._journal.state()[0].finished[line.id]
        self._check_size(entry)
        yield from rollout_texts(self._run.load(entry))

    def raw(self, line: Line) -> bytes:
        """See Source."""
        return to_json(self.read(line.id).rollout)

    def read(self, identity: str) -> ReadRollout:
        """The record and what is worked out of it. Raises RecordCorrupt, StoreError."""
        entry = self._journal.state()[0].finished.get(identity)
        if entry is None:
            raise RecordCorrupt(f"no finished rollout {identity!r}", hint="go back to the list")
        place = (entry.shard, entry.offset)
        with self._lock:
            if place in self._rollouts:
                self._rollouts.move_to_end(place)
                return self._rollouts[place]
        self._check_size(entry)
        made = ReadRollout(self._run.load(entry))
        if entry.length < _KEPT_BYTES // _KEPT:
            with self._lock:
                self._rollouts[place] = made
                while len(self._rollouts) > _KEPT:
                    self._rollouts.popitem(last=False)
        return made

    def _check_size(self, entry: Finished) -> None:
        """A few bytes may claim to unpack to terabytes. Raises RecordCorrupt."""
        path = shard_path(self._run.root, entry.shard)
        try:
            with path.open("rb") as stream:
                stream.seek(entry.offset + _HEADER)
                size = zstandard.get_frame_parameters(stream.read(64)).content_size
        except (OSError, zstandard.ZstdError):
            return  # `load` says it better
        if size > LARGEST:
            raise RecordCorrupt(
                f"rollout {entry.id} would unpack to {size:,} bytes, more than is read here ({LARGEST:,})",
                hint="zstd -dc on its shard unpacks it",
            )


def line_facts(now: Lines) -> dict[str, str]:
    """What the lines of runs say together."""
    scores = [line.score for line in now.lines if line.score is not None]
    costs = [line.cost_usd for line in now.lines]
    known = [cost for cost in costs if cost is not None]
    return {
        "done": f"{len(now.lines):,} of {now.planned:,}",
        "mean score": f"{sum(scores) / len(scores):.3f}" if scores else words.NONE,
        "tokens": words.count(sum(line.tokens for line in now.lines)),
        "cost": words.dollars(sum(known) if len(known) == len(costs) else None),
    }
