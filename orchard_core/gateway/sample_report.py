"""Why each sampled token of a rollout is trained or not, call by call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchard_core.gateway.kinds import common, kind_of, text_of
from orchard_core.gateway.labels import label_threads
from orchard_core.gateway.samples import samples_of
from orchard_core.gateway.threads import Node, graph, starts_thread, thread_of
from orchard_core.types.sample import SampleLabel, SampleSet, Untrained, UntrainedSpan
from orchard_core.types.sample_report import CallPlace, Relation, SampleReport, ThreadPlace
from orchard_core.types.trajectory import Trajectory

_EXCERPT = 60

_REASONS = {
    Untrained.DRIFT: "the next prompt spells them with other ids",
    Untrained.SIDE: "a side call is never trained",
    Untrained.RETRIED: "the same request was sent again and that answer was used",
    Untrained.CANCELLED: "the client left before the answer ended",
    Untrained.CUT: "the answer was cut and not used",
    Untrained.UNSCORED: "the server told no log-probabilities of them, or not the prompt before them",
}


def build_sample_report(trajectory: Trajectory) -> SampleReport:
    """The report, also for rollouts without token ids: messages alone then tell the threads.

    Raises RecordCorrupt when calls that others build on are missing.
    """
    nodes = graph(trajectory, every=True)
    made = samples_of(trajectory, nodes)
    starts = [node for node in nodes if node.dropped is None and starts_thread(node)]
    labels = label_threads(trajectory, starts)
    starts.sort(key=lambda node: labels[node.index] is not SampleLabel.MAIN)
    threads = tuple(_thread(trajectory, start, labels[start.index], nodes) for start in starts)
    places = {index: number for number, thread in enumerate(threads) for index in thread.calls}
    reader = _Reader(trajectory=trajectory, made=made, threads=threads, places=places)
    calls = tuple(reader.call(node, before) for node, before in zip(nodes, [None, *nodes], strict=False))
    return SampleReport(
        threads=threads,
        calls=calls,
        sampled=sum(call.sampled or 0 for call in calls),
        trained=sum(call.trained for call in calls),
        unusable=made.unusable,
    )


def _thread(trajectory: Trajectory, start: Node, label: SampleLabel, nodes: Sequence[Node]) -> ThreadPlace:
    earlier = [node for node in nodes if node.index < start.index]
    kind, other = kind_of(trajectory, start, label, earlier)
    calls = tuple(node.index for node in thread_of(start))
    return ThreadPlace(kind=kind, label=label, calls=calls, beside=None if other is None else other.index)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """Reads one call after the other."""

    trajectory: Trajectory
    made: SampleSet
    threads: Sequence[ThreadPlace]
    places: Mapping[int, int]

    def call(self, node: Node, before: Node | None) -> CallPlace:
        """One call's place; `before` is the call that arrived before it."""
        thread, parent = self.places.get(node.index), node.parent
        spans = tuple(span for span in self.made.untrained if span.call == node.index)
        sampled = node.call.completion_tokens
        spared = sum(span.stop - span.start for span in spans)
        trained = len(sampled or ()) - spared if node.spelled else 0
        shared = common(node.messages, before.messages) if before is not None else 0
        return CallPlace(
            call=node.index,
            thread=thread,
            relation=self._relation(node, thread),
            follows=None if parent is None else parent.index,
            by_tokens=bool(node.spelled),
            added=len(node.messages) - (0 if parent is None else common(node.messages, parent.messages)),
            dropped_messages=0 if before is None else len(before.messages) - shared,
            sampled=None if sampled is None else len(sampled),
            trained=trained,
            untrained=spans,
            why=self._why(node, trained, spans),
            asks=self._excerpt(node.messages[-1] if node.messages else None),
            says=self._excerpt(node.call.response),
        )

    def _relation(self, node: Node, thread: int | None) -> Relation:
        if thread is None:
            return Relation.UNUSED
        if node.index != self.threads[thread].calls[0]:
            return Relation.REALIGNED if node.drifted else Relation.APPENDED
        by_label = {SampleLabel.MAIN: Relation.START, SampleLabel.SIDE: Relation.SIDE}
        return by_label.get(self.threads[thread].label, Relation.FORKED)

    def _why(self, node: Node, trained: int, spans: Sequence[UntrainedSpan]) -> str:
        error = node.call.error
        if node.call.completion_tokens is None:
            return f"nothing to train: {error.kind if error is not None else 'the server told no token ids'}"
        return "; ".join(_reasons(trained, spans)) or "the answer is empty"

    def _excerpt(self, key: str | None) -> str:
        message = self.trajectory.messages.get(key or "")
        words = "" if message is None else " ".join(text_of(message).split())
        return words.encode("utf-8", "replace").decode()[:_EXCERPT]


def _reasons(trained: int, spans: Sequence[UntrainedSpan]) -> Iterator[str]:
    if trained:
        yield f"{trained} trained"
    counts: dict[Untrained, int] = defaultdict(int)
    for span in spans:
        counts[span.reason] += span.stop - span.start
    for reason, count in counts.items():
        yield f"{count} not ({reason}): {_REASONS[reason]}"
