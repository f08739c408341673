"""From recorded calls to token sequences to train on. Nothing is ever tokenised again.

Each chain of the prefix graph (see `threads`) becomes one sample whose ids are the last call's prompt and
answer, exactly as the model saw them. Every call's answer belongs to one chain, so that a sampled token is
trained at most once; the rest of a sample, shared beginnings of forks included, has mask 0.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from orchard_core.gateway.labels import label_threads
from orchard_core.gateway.threads import Node, graph, starts_thread, thread_of
from orchard_core.types.model import VersionSpan
from orchard_core.types.sample import SampleLabel, SampleSet, TrainingSample, Untrained, UntrainedSpan
from orchard_core.types.trajectory import Trajectory


def build_samples(trajectory: Trajectory) -> SampleSet:
    """Training samples, main thread first, and why the remaining sampled tokens are not in any.

    Raises RecordCorrupt when calls that others build on are missing.
    """
    return _samples(trajectory, graph(trajectory))


def samples_of(trajectory: Trajectory, nodes: Sequence[Node]) -> SampleSet:
    """The same where the caller has the graph of every call, tokens known or not. Walking it is the costly
    part of a long rollout, and where all tokens are known it is the samples' own."""
    return _samples(trajectory, nodes) if all(node.spelled for node in nodes) else build_samples(trajectory)


def _samples(trajectory: Trajectory, nodes: Sequence[Node]) -> SampleSet:
    if not nodes:
        return SampleSet(unusable=_why_none(trajectory))
    starts = [node for node in nodes if node.dropped is None and starts_thread(node)]
    labels = label_threads(trajectory, starts)
    stop = _stop_id(nodes)
    untrained = [_whole(node, node.dropped) for node in nodes if node.dropped is not None]
    untrained += _unscored(trajectory, {node.index for node in nodes})
    samples = []
    for start in sorted(starts, key=lambda node: labels[node.index] is not SampleLabel.MAIN):
        chain = _Chain(label=labels[start.index], tokens=array("q"))
        for node in thread_of(start):
            chain.add(node, stop)
        samples.append(chain.sample())
        untrained += chain.untrained
    untrained.sort(key=lambda span: (span.call, span.start))
    unusable = "" if samples else "no answer of this rollout came to its end"
    return SampleSet(samples=tuple(samples), untrained=tuple(untrained), unusable=unusable)


def _whole(node: Node, reason: Untrained) -> UntrainedSpan:
    return UntrainedSpan(call=node.index, start=0, stop=len(node.answer), reason=reason)


def _unscored(trajectory: Trajectory, known: Set[int]) -> list[UntrainedSpan]:
    """Sampled ids that came without prompt or log-probabilities."""
    return [
        UntrainedSpan(call=call.index, start=0, stop=len(call.completion_tokens), reason=Untrained.UNSCORED)
        for call in trajectory.calls
        if call.completion_tokens and call.index not in known
    ]


@dataclass(slots=True, kw_only=True)
class _Chain:
    """A sample that grows call by call."""

    label: SampleLabel
    tokens: array[int]
    mask: bytearray = field(default_factory=bytearray)
    logprobs: array[float] = field(default_factory=lambda: array("d"))
    versions: list[VersionSpan] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    untrained: list[UntrainedSpan] = field(default_factory=list)

    def add(self, node: Node, stop: int | None) -> None:
        """Take the call's prompt as far as it is new, then its answer."""
        self._pad(node.prompt)
        if self.label is SampleLabel.SIDE:
            self._pad(node.prompt + node.answer)
            self.untrained.append(_whole(node, Untrained.SIDE))
        elif node.next is not None and node.next.drifted:
            self._realign(node, node.next.prompt, stop)
        else:
            self._pad(node.prompt + node.answer)
            self._train(node, 0, len(node.answer), len(node.prompt))
        self.calls.append(node.index)

    def _pad(self, tokens: array[int]) -> None:
        """Go on with the ids of `tokens` that are not there yet, untrained."""
        new = tokens[len(self.tokens) :]
        self.tokens += new
        self.mask += bytes(len(new))
        self.logprobs.extend([0.0] * len(new))

    def _realign(self, node: Node, rendered: array[int], stop: int | None) -> None:
        """The answer as the next prompt renders it; what is rendered alike is trained, the rest is not."""
        at = len(node.prompt)
        front, back, end = _matching(node.answer, rendered[at:], stop)
        self._pad(rendered[: at + end])
        size = len(node.answer)
        self._train(node, 0, front, at)
        self._train(node, size - back, size, at + end - size)
        if front < size - back:
            drift = UntrainedSpan(call=node.index, start=front, stop=size - back, reason=Untrained.DRIFT)
            self.untrained.append(drift)

    def _train(self, node: Node, start: int, stop: int, shift: int) -> None:
        """Train ids `start` to `stop` of an answer, which stand `shift` further in the sample."""
        if start == stop:
            return
        self.mask[start + shift : stop + shift] = b"\x01" * (stop - start)
        self.logprobs[start + shift : stop + shift] = array("d", (node.call.logprobs or ())[start:stop])
        for span in node.call.versions:
            first, last = max(span.start, start), min(span.stop, stop)
            if first < last:
                self.versions.append(
                    VersionSpan(start=first + shift, stop=last + shift, version=span.version)
                )

    def sample(self) -> TrainingSample:
        """The sample as it is stored."""
        return TrainingSample(
            token_ids=tuple(self.tokens),
            mask=tuple(self.mask),
            logprobs=tuple(self.logprobs),
            versions=tuple(self.versions),
            label=self.label,
            calls=tuple(self.calls),
        )


def _matching(answer: array[int], rendered: array[int], stop: int | None) -> tuple[int, int, int]:
    """How an answer reappears: ids alike at its front, ids alike at its back, where it ends in `rendered`.

    The back counts only where the end is known, by the id that ends every answer of the rollout: an equal id
    further on may belong to what a tool said.
    """
    limit = min(len(answer), len(rendered))
    front = next((at for at in range(limit) if answer[at] != rendered[at]), limit)
    if stop is None or answer[-1] != stop or front == len(answer):
        return front, 0, front
    try:
        end = rendered.index(stop, front) + 1
    except ValueError:
        return front, 0, front
    back = 0
    while back < min(len(answer), end) - front and answer[-1 - back] == rendered[end - 1 - back]:
        back += 1
    drift = len(answer) - front - back
    if end - front - back > _STRETCH * drift + _SLACK:
        return front, 0, front
    return front, back, end


_STRETCH, _SLACK = 4, 16
"""A drifted span longer than this multiple of what was sampled, plus some, is not the same text."""


def _stop_id(nodes: Sequence[Node]) -> int | None:
    """The id that ends every completed answer and stands nowhere else in one, if there is one."""
    done = [node.answer for node in nodes if node.call.finish_reason in ("stop", "tool_calls")]
    last = {answer[-1] for answer in done}
    if len(last) != 1:
        return None
    stop = last.pop()
    return stop if all(answer.index(stop) == len(answer) - 1 for answer in done) else None


def _why_none(trajectory: Trajectory) -> str:
    calls = trajectory.calls
    if not calls:
        return "the rollout made no model call"
    if all(call.completion_tokens is None for call in calls):
        return "the model server reported no token ids (use one that does, such as vLLM)"
    if all(call.logprobs is None for call in calls):
        return "the model server reported token ids but no log-probabilities"
    return "no answer has both token ids and log-probabilities"
