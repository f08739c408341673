"""From rollouts to rows: one a conversation, in chat's shape, each answer trained once."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchard_core import (
    Message,
    MessageRefs,
    RecordCorrupt,
    SampleLabel,
    Trajectory,
    build_sample_report,
    build_samples,
    rollout_rows,
)
from orchard_core.datasets.verify_row import row_faults
from orchard_core.types.dataset import DatasetRow
from tests.gateway.shapes import Recording, answer, bash, system, tool, user
from tests.gateway.talks import Talk
from tests.gateway.test_samples import KINDS

from .credit import making as credited
from .making import Recorded, rollout_of, said

EVERY = frozenset(SampleLabel)


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=14),
    vocabulary=st.sampled_from([1, 2, 4, 50]),
    tokens=st.booleans(),
)
def test_each_answer_that_is_used_is_trained_in_exactly_one_row(
    seed: int, kinds: list[str], vocabulary: int, tokens: bool
) -> None:
    talk = Talk(Random(seed), vocabulary)
    for kind in kinds:
        talk.step(kind)
    trajectory = talk.trajectory() if tokens else without_tokens(talk.trajectory())
    rows = rollout_rows(rollout_of(trajectory), threads=EVERY)
    threads = build_sample_report(trajectory).threads
    assert [row.label for row in rows] == [thread.label for thread in threads]
    trained = Counter(text for row in rows for text in trained_texts(row))
    used = [call for thread in threads if thread.label is not SampleLabel.SIDE for call in thread.calls]
    assert trained == Counter(f"answer {call}" for call in used)
    for row, thread in zip(rows, threads, strict=True):
        check_row(talk, row, thread.calls, exact=not tokens)


def check_row(talk: Talk, row: DatasetRow, calls: tuple[int, ...], *, exact: bool) -> None:
    """A row holds its last call's request and answer, and its own answers in order. Where ids tell the
    threads, two answers that happen to have the same ones may stand for each other, as no real ones do."""
    last = talk.calls[calls[-1]]
    messages = said(row)
    texts = [message["content"] for message in messages]
    sent = [*(message.text for message in last.said), last.text]
    assert texts == sent or not exact
    assert [text for text in texts if text[:6] != "answer"] == [text for text in sent if text[:6] != "answer"]
    assert len(row.mask) == len(messages)
    assert row.turns == sum(message["role"] == "assistant" for message in messages)
    assert row.label is SampleLabel.SIDE or trained_texts(row) == [f"answer {call}" for call in calls]
    assert row.provenance["calls"] == list(calls)


def trained_texts(row: DatasetRow) -> list[str]:
    return [message["content"] for message, mask in zip(said(row), row.mask, strict=True) if mask]


def without_tokens(trajectory: Trajectory) -> Trajectory:
    """The same from a server that tells no ids."""
    calls = [
        call.model_copy(update={"prompt_tokens": None, "completion_tokens": None, "logprobs": None})
        for call in trajectory.calls
    ]
    return trajectory.model_copy(update={"calls": tuple(calls)})


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=14),
    bare=st.booleans(),
)
def test_a_rows_token_ids_are_its_sample_and_every_trained_id_lies_in_one_answers_span(
    seed: int, kinds: list[str], bare: bool
) -> None:
    talk = Talk(Random(seed), 4, bare)
    for kind in kinds:
        talk.step(kind)
    trajectory = talk.trajectory()
    rows = rollout_rows(rollout_of(trajectory), threads=EVERY)
    samples = {sample.calls: sample for sample in build_samples(trajectory).samples}
    assert len(samples) == len(rows)
    for row in rows:
        calls: Any = row.provenance["calls"]
        sample, held = samples[tuple(calls)], row.tokens
        assert held is not None
        assert (held.token_ids, held.mask, held.logprobs) == (sample.token_ids, sample.mask, sample.logprobs)
        assert held.versions == sample.versions
        assert (row.token_count, row.token_count_exact) == (len(sample.token_ids), True)
        inside = {place for span in held.answers for place in range(span.start, span.stop)}
        assert {place for place, mask in enumerate(held.mask) if mask} <= inside
        assert sum(span.stop - span.start for span in held.answers) == len(inside), "two spans overlap"
        texts = [message["content"] for message in said(row)]
        assert [texts[span.message] for span in held.answers] == [f"answer {call}" for call in calls]
        assert [fault for fault in row_faults(row) if not fault[0].endswith(".tool_call_id")] == []


def test_the_main_conversation_comes_first_and_has_the_rollouts_id() -> None:
    rollout = rollout_of(with_title_and_fork())
    rows = rollout_rows(rollout)
    assert [(row.id, row.label) for row in rows] == [
        (rollout.id, SampleLabel.MAIN),
        (f"{rollout.id}#2", SampleLabel.FORK),
    ]
    assert {row.rollout for row in rows} == {rollout.id}


def test_a_side_call_is_a_row_only_when_asked_for_and_is_never_trained() -> None:
    rollout = rollout_of(with_title_and_fork())
    (side,) = rollout_rows(rollout, threads=frozenset({SampleLabel.SIDE}))
    assert (side.id, side.label) == (f"{rollout.id}#1", SampleLabel.SIDE)
    assert (said(side)[-1]["content"], side.mask) == ("Lights", (0, 0, 0))


def test_what_a_fork_shares_with_another_conversation_is_not_trained_again() -> None:
    main, fork = rollout_rows(rollout_of(with_title_and_fork()))
    assert main.mask == (0, 0, 1, 0, 1)
    assert fork.mask == (0, 0, 0, 0, 1)
    assert [message["role"] for message in said(fork)] == ["system", "user", "assistant", "user", "assistant"]


def with_title_and_fork() -> Trajectory:
    talk = Recording(tokens=False)
    talk.call([system("You name talks."), user("Name it.")], answer("Lights"), tools=False)
    begin = [system("You act."), user("Switch on the light.")]
    first = talk.call(begin, bash("c1", "ls"))
    talk.call([*begin, first, tool("c1", "lamp")], answer("Done."))
    talk.call([*begin, first, user("Try again.")], answer("Done so."))
    return talk.trajectory()


def test_without_counts_of_the_server_the_length_is_estimated_and_an_image_has_a_stated_size() -> None:
    talk = Recorded()
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{'A' * 40_000}"}}
    talk.call([{"role": "user", "content": [picture]}], {"role": "assistant", "content": "x" * 400})
    (row,) = rollout_rows(talk.rollout())
    assert not row.token_count_exact
    assert 1_700 < row.token_count < 1_800


def test_a_row_tells_where_it_is_from_and_names_no_path_of_the_machine() -> None:
    talk = Recorded()
    talk.call([{"role": "user", "content": "Go."}], {"role": "assistant", "content": "x"})
    rollout = talk.rollout()
    (row,) = rollout_rows(rollout, run="first")
    told = row.provenance
    assert (told["run"], told["orchard"], told["harness"]) == ("first", "0", "fake 1")
    assert (told["provider"], told["image"], told["finished_at"]) == ("fake", "host", rollout.finished_at)
    assert (row.task, row.taskset, row.task_text, row.reward) == ("one", "set", "Do one.", 1.0)


def test_the_last_tool_results_stand_beside_the_messages_that_no_request_carried_on() -> None:
    talk = Recorded()
    talk.call([{"role": "user", "content": "Go."}], bash("c1", "ls"))
    rollout = talk.rollout()
    result = Message(role="tool", raw='{"role":"tool","tool_call_id":"c1","content":"lamp"}')
    trajectory = rollout.trajectory.model_copy(
        update={
            "messages": {**rollout.trajectory.messages, "last": result},
            "last_observations": ("last",),
        }
    )
    (row,) = rollout_rows(rollout_of(trajectory))
    assert row.metadata == {"last_observations": [{"role": "tool", "content": "lamp", "tool_call_id": "c1"}]}
    assert said(row)[-1]["role"] == "assistant"


def test_a_rollout_whose_model_never_answered_has_no_row() -> None:
    assert rollout_rows(rollout_of(Trajectory())) == []


def test_a_trajectory_from_which_a_call_was_taken_is_refused() -> None:
    talk = Recorded()
    talk.call([{"role": "user", "content": "Go."}], {"role": "assistant", "content": "x"})
    rollout = talk.rollout()
    torn = rollout.trajectory.calls[0].model_copy(update={"messages": MessageRefs(base=7, keep=1)})
    with pytest.raises(RecordCorrupt, match="call 0 builds on call 7"):
        rollout_rows(rollout_of(rollout.trajectory.model_copy(update={"calls": (torn,)})))


@pytest.mark.parametrize(
    "raw",
    [
        "{",
        "[1]",
        "null",
        "7",
        '{"role": "assistant", "content": NaN}',
        '{"content": "x"}',
        "[" * 3000 + "]" * 3000,
    ],
)
def test_messages_that_are_none_are_damage_of_that_rollout(raw: str) -> None:
    """A run may come from anyone: what is no message is named as damage, and is no bug of ours."""
    rollout = credited.make_rollout("odd", turns=2)
    messages = {
        key: message.model_copy(update={"raw": raw}) if message.role == "assistant" else message
        for key, message in rollout.trajectory.messages.items()
    }
    trajectory = rollout.trajectory.model_copy(update={"messages": messages})
    with pytest.raises(RecordCorrupt, match="the messages of rollout odd cannot be read"):
        rollout_rows(rollout.model_copy(update={"trajectory": trajectory}))
