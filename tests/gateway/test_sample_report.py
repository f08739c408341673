"""What the calls of real harnesses are taken for, with token ids and without."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchard_core import Relation, SampleReport, ThreadKind, Trajectory, build_sample_report, build_samples

from .shapes import Recording, claude_code, miniswe, opencode, zeroclaw
from .talks import Talk
from .test_samples import KINDS

BOTH = pytest.mark.parametrize("tokens", [True, False], ids=["tokens", "messages"])


def report_of(shape: Callable[[Recording], None], tokens: bool) -> SampleReport:
    recording = Recording(tokens)
    shape(recording)
    return build_sample_report(recording.trajectory())


def threads(report: SampleReport) -> list[tuple[str, tuple[int, ...], int | None]]:
    return [(thread.kind.value, thread.calls, thread.beside) for thread in report.threads]


def relations(report: SampleReport) -> list[str]:
    return [call.relation.value for call in report.calls]


@BOTH
def test_opencode_s_title_is_a_side_call_and_not_the_main_thread(tokens: bool) -> None:
    report = report_of(opencode, tokens)
    assert threads(report) == [("main", (1, 2), None), ("side", (0,), None)]
    assert relations(report) == ["side", "start", "appended"]
    assert [call.follows for call in report.calls] == [None, None, 1]


@BOTH
def test_claude_code_s_small_calls_subagent_summary_and_compaction_are_told_apart(tokens: bool) -> None:
    report = report_of(claude_code, tokens)
    assert threads(report) == [
        ("main", (2, 5, 6), None),
        ("side", (0,), None),
        ("side", (1,), None),
        ("subagent", (3, 4), 2),
        ("compacted", (7, 8), 6),
    ]
    assert relations(report) == [
        "side", "side", "start", "forked", "appended", "appended", "appended", "forked", "appended",
    ]  # fmt: skip


@BOTH
def test_zeroclaw_s_trimming_and_its_subagent_are_told_apart(tokens: bool) -> None:
    report = report_of(zeroclaw, tokens)
    assert threads(report) == [
        ("main", (0, 1, 3), None),
        ("subagent", (2,), 1),
        ("trimmed", (4, 5), 3),
    ]
    assert report.calls[4].dropped_messages == 5


@BOTH
def test_an_answer_that_the_harness_left_out_does_not_take_the_main_thread_with_it(tokens: bool) -> None:
    report = report_of(miniswe, tokens)
    assert threads(report)[0] == ("main", (1, 3), None)
    assert {kind for kind, _, _ in threads(report)[1:]} == {"fork", "branch"}


@pytest.mark.parametrize("shape", [opencode, claude_code, zeroclaw, miniswe])
def test_every_answer_of_a_harness_is_trained_but_those_of_side_calls(
    shape: Callable[[Recording], None],
) -> None:
    report = report_of(shape, tokens=True)
    assert report.unusable == ""
    for call in report.calls:
        assert call.trained == (0 if call.relation is Relation.SIDE else call.sampled)
        assert ("not (side)" in call.why) == (call.relation is Relation.SIDE)


def test_without_token_ids_the_report_says_why_there_is_no_sample() -> None:
    report = report_of(opencode, tokens=False)
    assert "no token ids" in report.unusable
    assert [(call.sampled, call.trained, call.by_tokens) for call in report.calls] == [(None, 0, False)] * 3
    assert {call.why for call in report.calls} == {"nothing to train: the server told no token ids"}
    assert (report.calls[0].asks, report.calls[0].says) == ("Generate a title: Fix it", "Fixing it")


def test_an_answer_sent_back_in_other_words_is_realigned_by_messages() -> None:
    recording = Recording(tokens=False)
    recording.call(
        [{"role": "user", "content": "go"}], {"role": "assistant", "content": "<think>hm</think> a"}
    )
    shortened = {"role": "assistant", "content": "a"}
    recording.call(
        [{"role": "user", "content": "go"}, shortened, {"role": "user", "content": "on"}],
        {"role": "assistant", "content": "b"},
    )
    assert relations(build_sample_report(recording.trajectory())) == ["start", "realigned"]


def test_calls_of_which_some_have_no_token_ids_are_one_thread() -> None:
    recording = Recording(tokens=True)
    opencode(recording)
    whole = recording.trajectory()
    blind = whole.calls[1].model_copy(
        update={"prompt_tokens": None, "completion_tokens": None, "logprobs": None}
    )
    report = build_sample_report(whole.model_copy(update={"calls": (whole.calls[0], blind, whole.calls[2])}))
    assert threads(report)[0] == ("main", (1, 2), None)
    assert [call.by_tokens for call in report.calls] == [True, False, True]


def test_a_rollout_without_calls_has_an_empty_report() -> None:
    report = build_sample_report(Trajectory())
    assert (report.threads, report.calls, report.unusable) == ((), (), "the rollout made no model call")


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32), kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=14))
def test_the_report_agrees_with_the_samples(seed: int, kinds: list[str]) -> None:
    talk = Talk(Random(seed))
    for kind in kinds:
        talk.step(kind)
    trajectory = talk.trajectory()
    report, made = build_sample_report(trajectory), build_samples(trajectory)
    assert [(thread.label, thread.calls) for thread in report.threads] == [
        (sample.label, sample.calls) for sample in made.samples
    ]
    assert report.trained == sum(sum(sample.mask) for sample in made.samples)
    assert sum(len(call.untrained) for call in report.calls) == len(made.untrained)
    for call in report.calls:
        assert (call.thread is None) == (call.relation is Relation.UNUSED)
        assert call.trained + sum(span.stop - span.start for span in call.untrained) == call.sampled
        if call.relation in (Relation.APPENDED, Relation.REALIGNED) and call.thread is not None:
            mates = report.threads[call.thread].calls
            assert mates[mates.index(call.call) - 1] == call.follows
    starts = [call for call in report.calls if call.relation is Relation.START]
    assert len(starts) == sum(thread.kind is ThreadKind.MAIN for thread in report.threads) <= 1
