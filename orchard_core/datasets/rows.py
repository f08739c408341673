"""From a rollout to the rows of a dataset: one a conversation.

A conversation is a thread of the prefix graph (`gateway/threads`): the last call's request and its answer,
with each answer of the thread as it was sampled, not as the harness sent it back. Answers that were repeated,
cut or given up are in no row. An answer is trained in the row of its own thread alone: where a fork shares a
beginning with another thread, the answers in that beginning have mask 0. Side calls are never trained.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from orchard_core.datasets.rows_chat import Chat, spoken
from orchard_core.datasets.rows_size import token_count
from orchard_core.datasets.rows_tokens import recorded_tokens
from orchard_core.errors import RecordCorrupt
from orchard_core.gateway.json_text import JsonFault
from orchard_core.gateway.kinds import kind_of
from orchard_core.gateway.labels import label_threads
from orchard_core.gateway.samples import samples_of
from orchard_core.gateway.threads import Node, graph, starts_thread, thread_of
from orchard_core.rollout.text import storable
from orchard_core.types.dataset import DatasetRow
from orchard_core.types.rollout import Rollout
from orchard_core.types.sample import SampleLabel, TrainingSample
from orchard_core.types.trajectory import Trajectory

DEFAULT_THREADS = frozenset({SampleLabel.MAIN, SampleLabel.FORK})
"""Conversations that rows are made of unless others are asked for."""


def rollout_rows(
    rollout: Rollout, *, threads: frozenset[SampleLabel] = DEFAULT_THREADS, run: str = ""
) -> list[DatasetRow]:
    """Rows of a rollout, the main conversation first; none when no answer came to its end.

    The further ones are numbered by their place among all conversations, so that a row's id does not depend
    on which of them are asked for. `run` is the name of the run's directory, for the provenance. Raises
    RecordCorrupt when calls that others build on are missing, and for messages that are none.
    """
    try:
        return _rows(rollout, threads, run)
    except (JsonFault, LookupError, TypeError, AttributeError) as error:  # border: what a file says was said
        raise RecordCorrupt(
            f"the messages of rollout {rollout.id} cannot be read: {type(error).__name__}: {error}",
            hint="the record is damaged, or no gateway wrote it: restore it from a copy",
        ) from error


def _rows(rollout: Rollout, threads: frozenset[SampleLabel], run: str) -> list[DatasetRow]:
    told = _Threads.of(rollout.trajectory)
    common, provenance = _common(rollout), _provenance(rollout, run)
    chat = Chat(rollout.trajectory)
    return [
        _row(rollout, chat, told, thread, provenance).model_copy(update=common)
        for thread in told.threads
        if thread.label in threads
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Thread:
    """One conversation."""

    number: int
    """Its place among all conversations of the rollout; 0: the main one."""
    label: SampleLabel
    """What it is to its rollout."""
    kind: str
    """What it is, as far as the calls can tell: a `ThreadKind`."""
    nodes: Sequence[Node]
    """Its calls, in order."""
    instead: Sequence[str] = ()
    """Hashes of the messages that a later request carries where the last answer would stand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Threads:
    """All conversations of a trajectory, and its samples by the calls they hold."""

    threads: Sequence[_Thread]
    samples: dict[tuple[int, ...], TrainingSample]
    prompt_sizes: dict[int, int]

    @classmethod
    def of(cls, trajectory: Trajectory) -> _Threads:
        nodes = graph(trajectory, every=True)
        starts = [node for node in nodes if node.dropped is None and starts_thread(node)]
        labels = label_threads(trajectory, starts)
        starts.sort(key=lambda node: labels[node.index] is not SampleLabel.MAIN)
        first = 0 if starts and labels[starts[0].index] is SampleLabel.MAIN else 1
        threads = [
            _thread(trajectory, start, number, labels[start.index], nodes)
            for number, start in enumerate(starts, first)
        ]
        known = any(call.completion_tokens for call in trajectory.calls)
        samples = samples_of(trajectory, nodes).samples if known else ()
        return cls(
            threads=threads,
            samples={sample.calls: sample for sample in samples},
            prompt_sizes={node.index: len(node.prompt) for node in nodes},
        )


def _thread(
    trajectory: Trajectory, start: Node, number: int, label: SampleLabel, nodes: Sequence[Node]
) -> _Thread:
    calls = list(thread_of(start))
    return _Thread(
        number=number,
        label=label,
        kind=_kind(trajectory, start, label, nodes),
        nodes=calls,
        instead=_instead(trajectory, calls[-1], nodes),
    )


def _instead(trajectory: Trajectory, last: Node, nodes: Sequence[Node]) -> Sequence[str]:
    """What a harness says that gives up an answer it could not act on, and sends words of its own for it."""
    size = len(last.messages)
    for node in nodes:
        if node.index > last.index and len(node.messages) > size and node.messages[:size] == last.messages:
            rest = node.messages[size:]
            answers = [at for at, key in enumerate(rest) if trajectory.messages[key].role == "assistant"]
            return rest[: answers[0] if answers else len(rest)]
    return ()


def _kind(trajectory: Trajectory, start: Node, label: SampleLabel, nodes: Sequence[Node]) -> str:
    earlier = [node for node in nodes if node.index < start.index]
    return kind_of(trajectory, start, label, earlier)[0].value


def _row(
    rollout: Rollout, chat: Chat, told: _Threads, thread: _Thread, provenance: Mapping[str, JsonValue]
) -> DatasetRow:
    """What is the thread's own."""
    said = spoken(chat, thread.nodes)
    tools = chat.tools(thread.nodes)
    calls = tuple(node.index for node in thread.nodes)
    trained = thread.label is not SampleLabel.SIDE
    places = [place for place, message in enumerate(said) if message.call is not None]
    tokens = recorded_tokens(told.samples.get(calls), told.prompt_sizes, places)
    texts = [message.text for message in said]
    count, exact = token_count(thread.nodes[-1].call, tokens, texts, tools)
    return DatasetRow.model_construct(
        rollout=rollout.id,
        id=rollout.id if thread.number == 0 else f"{rollout.id}#{thread.number}",
        label=thread.label,
        messages=f"[{','.join(texts)}]",
        tools=tools,
        mask=tuple(int(trained and message.call is not None) for message in said),
        tokens=tokens,
        token_count=count,
        token_count_exact=exact,
        turns=sum(message.role == "assistant" for message in said),
        provenance={**provenance, "kind": thread.kind, "calls": list(calls)},
        metadata=_metadata(rollout, chat, thread),
    )


def _common(rollout: Rollout) -> dict[str, Any]:
    """What all rows of a rollout share."""
    task = rollout.task
    return {
        "harness": rollout.harness,
        "model": rollout.model,
        "taskset": task.taskset,
        "task": task.id,
        "task_text": storable(task.instruction),
        "tags": task.tags,
        "attempt": rollout.attempt,
        "seed": rollout.seed,
        "outcome": rollout.outcome,
        "attribution": rollout.attribution,
        "reward": rollout.score,
    }


def _provenance(rollout: Rollout, run: str) -> dict[str, JsonValue]:
    """The run, versions, digests and when, and why the harness stopped, where it says."""
    told, result = rollout.provenance, rollout.result
    return {
        **({"run": storable(run)} if run else {}),
        "orchard": told.orchard,
        "harness": told.harness,
        "model": told.model,
        "provider": told.provider,
        "image": told.image,
        "image_fallback": told.image_fallback,
        "prompt_digest": told.prompt_digest,
        "config_digest": told.config_digest,
        "task_digest": rollout.task.digest,
        "plugins": dict(told.plugins),
        "started_at": rollout.started_at,
        "finished_at": rollout.finished_at,
        **({"stop": result.stop.value} if result is not None else {}),
    }


def _metadata(rollout: Rollout, chat: Chat, thread: _Thread) -> dict[str, JsonValue]:
    """The tool results that no request carried any more belong to the main conversation's last answer, and
    what was sent instead of an answer to the conversation that ends with it. They stand beside the messages:
    nothing follows them that could be trained, and no token count covers them."""
    last = rollout.trajectory.last_observations if thread.label is SampleLabel.MAIN else ()
    told = {"last_observations": last, "sent_instead": thread.instead}
    return {name: list(_values(chat, keys)) for name, keys in told.items() if keys}


def _values(chat: Chat, keys: Sequence[str]) -> Iterator[JsonValue]:
    for key in keys:
        yield chat.value(key)
