"""Fault 22, fault 26 and the invariant of training samples."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchard_core import (
    RecordCorrupt,
    SampleLabel,
    SampleSet,
    Trajectory,
    Untrained,
    UntrainedSpan,
)
from orchard_core.gateway.samples import build_samples

from .talks import END, Talk, logprob, sampled

KINDS = [
    *["append"] * 4, *["drift"] * 2, "fork", "retry", "cancel", "cut", "error", "resume", "rewrite", "ignore",
    "side", "compact", "root",
]  # fmt: skip
"""Half of the steps go on with a thread, so that threads grow long."""


@settings(max_examples=400, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=14),
    vocabulary=st.sampled_from([1, 2, 4, 50]),
    bare=st.booleans(),
)
def test_each_sampled_token_is_trained_once_or_has_one_reason(
    seed: int, kinds: list[str], vocabulary: int, bare: bool
) -> None:
    talk = Talk(Random(seed), vocabulary, bare)
    for kind in kinds:
        talk.step(kind)
    check(talk, build_samples(talk.trajectory()))


def check(talk: Talk, made: SampleSet) -> None:
    """Everything the invariant says, by brute force, from the truth that the talk kept."""
    trained = Counter(
        sampled(value)
        for sample in made.samples
        for value, mask in zip(sample.logprobs, sample.mask, strict=True)
        if mask
    )
    spared = Counter((span.call, place) for span in made.untrained for place in range(span.start, span.stop))
    every = {(call.index, place) for call in talk.calls for place in range(len(call.answer))}
    assert trained | spared == trained + spared, "a token is trained and spared, or twice"
    assert set(trained) | set(spared) == every
    assert {1} >= {*trained.values(), *spared.values()}
    assert all(span.start < span.stop for span in made.untrained)
    for sample in made.samples:
        check_sample(talk, sample)
    check_reasons(talk, made)
    labels = [sample.label for sample in made.samples]
    assert labels.count(SampleLabel.MAIN) == (1 if labels else 0)
    assert not labels or labels[0] is SampleLabel.MAIN
    assert made.unusable == ("" if labels else made.unusable)


def check_sample(talk: Talk, sample: object) -> None:
    from orchard_core import TrainingSample

    assert isinstance(sample, TrainingSample)
    ids, size = list(sample.token_ids), len(sample.token_ids)
    assert len(sample.mask) == len(sample.logprobs) == size
    last = talk.calls[sample.calls[-1]]
    assert ids == last.prompt + last.answer, "a sample is what the model saw, and nothing else"
    owner = [*last.owner, *[last.index] * len(last.answer)]
    version: dict[int, str] = {}
    for span in sample.versions:
        version |= dict.fromkeys(range(span.start, span.stop), span.version)
    assert set(version) == {place for place in range(size) if sample.mask[place]}
    for place in range(size):
        if not sample.mask[place]:
            assert sample.logprobs[place] == 0.0
            continue
        index, at = sampled(sample.logprobs[place])
        call = talk.calls[index]
        assert index in sample.calls
        assert call.answer[at] == ids[place], "a trained id is the sampled id"
        assert version[place] == ("old" if at < len(call.answer) // 2 else "new")
        real = owner[place]
        assert real is not None, "an id that was not sampled is trained"
        assert talk.calls[real].prompt == call.prompt, "an id is trained as another call's"
    for one, other in zip(sample.calls, sample.calls[1:], strict=False):
        assert talk.calls[other].prompt[: len(talk.calls[one].prompt)] == talk.calls[one].prompt


def check_reasons(talk: Talk, made: SampleSet) -> None:
    for span in made.untrained:
        call = talk.calls[span.call]
        whole = (span.start, span.stop) == (0, len(call.answer))
        match span.reason:
            case Untrained.CANCELLED:
                assert whole
                assert call.error == "Cancelled"
            case Untrained.CUT:
                assert whole
                assert call.finish == "length" or call.error is not None
            case Untrained.RETRIED:
                assert whole
                assert sum(other.prompt == call.prompt for other in talk.calls) > 1
            case Untrained.SIDE:
                assert whole
            case Untrained.DRIFT:
                assert any(echo(other, call.index) not in (None, call.answer) for other in talk.calls)
    for call in talk.calls:
        if call.error == "Cancelled":
            reasons = {span.reason for span in made.untrained if span.call == call.index}
            assert reasons == {Untrained.CANCELLED}


def echo(call: object, index: int) -> list[int] | None:
    """An answer's ids as a later request renders them."""
    from .talks import Made

    assert isinstance(call, Made)
    return next((said.ids for said in call.said if said.call == index), None)


def talk_of(*kinds: str, seed: int = 1) -> Talk:
    talk = Talk(Random(seed))
    for kind in kinds:
        talk.step(kind)
    return talk


def test_an_exact_continuation_is_one_sample_with_every_answer_trained() -> None:
    talk = talk_of("root", "append", "append")
    made = build_samples(talk.trajectory())
    (sample,) = made.samples
    assert sample.calls == (0, 1, 2)
    assert made.untrained == ()
    assert sum(sample.mask) == sum(len(call.answer) for call in talk.calls)
    check(talk, made)


def test_fault_22_ids_rendered_anew_are_masked_and_nothing_is_tokenised_again() -> None:
    talk = talk_of("root", "append", "append")
    kept = talk.calls[1].prompt
    talk.calls[1].answer = [0, 1, 2, 3, END]
    talk.calls[2].said[4].ids = [0, 7, 8, 9, 3, END]
    made = build_samples(talk.trajectory())
    (sample,) = made.samples
    assert made.untrained == (UntrainedSpan(call=1, start=1, stop=3, reason=Untrained.DRIFT),)
    stretch = slice(len(kept), len(kept) + 6)
    assert sample.token_ids[stretch] == (0, 7, 8, 9, 3, END)
    assert sample.mask[stretch] == (1, 0, 0, 0, 1, 1)
    assert sample.logprobs[stretch] == (logprob(1, 0), 0.0, 0.0, 0.0, logprob(1, 3), logprob(1, 4))


def test_an_equal_id_in_what_a_tool_said_is_not_taken_for_the_end_of_an_answer() -> None:
    talk = talk_of("root", "append")
    talk.calls[0].answer, talk.calls[1].answer = [1, 2, 5], [3, 5]
    talk.calls[1].said[2].ids = [1, 7]
    talk.calls[1].said[3].ids = [9] * 40 + [5]
    made = build_samples(talk.trajectory())
    assert made.untrained == (UntrainedSpan(call=0, start=1, stop=3, reason=Untrained.DRIFT),)
    (sample,) = made.samples
    assert sum(sample.mask) == 3


def test_fault_26_a_title_is_no_training_sample_even_when_it_comes_first() -> None:
    talk = talk_of("side", "root", "append", "side")
    made = build_samples(talk.trajectory())
    assert [(sample.label, sample.calls) for sample in made.samples] == [
        (SampleLabel.MAIN, (1, 2)),
        (SampleLabel.SIDE, (0,)),
        (SampleLabel.SIDE, (3,)),
    ]
    assert [sum(sample.mask) > 0 for sample in made.samples] == [True, False, False]
    assert {(span.call, span.reason) for span in made.untrained} == {(0, Untrained.SIDE), (3, Untrained.SIDE)}


def test_a_rollout_of_one_call_is_its_main_thread() -> None:
    made = build_samples(talk_of("root").trajectory())
    assert [sample.label for sample in made.samples] == [SampleLabel.MAIN]


def test_of_two_lone_calls_the_one_with_tools_is_the_main_thread() -> None:
    made = build_samples(talk_of("side", "root").trajectory())
    assert [(sample.label, sample.calls) for sample in made.samples] == [
        (SampleLabel.MAIN, (1,)),
        (SampleLabel.SIDE, (0,)),
    ]


def test_compaction_makes_a_fork_of_its_own() -> None:
    talk = talk_of("root", "append", "compact", "append")
    made = build_samples(talk.trajectory())
    assert [(sample.label, sample.calls) for sample in made.samples] == [
        (SampleLabel.MAIN, (0, 1)),
        (SampleLabel.FORK, (2, 3)),
    ]
    assert made.untrained == ()
    check(talk, made)


def test_a_fork_trains_only_what_is_its_own() -> None:
    talk = talk_of("root", "append")
    talk.step("fork", at=0)
    talk.step("append")
    made = build_samples(talk.trajectory())
    assert [(sample.label, sample.calls) for sample in made.samples] == [
        (SampleLabel.MAIN, (0, 2, 3)),
        (SampleLabel.FORK, (1,)),
    ]
    assert sum(made.samples[1].mask) == len(talk.calls[1].answer)
    check(talk, made)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("cancel", Untrained.CANCELLED), ("cut", Untrained.CUT), ("error", Untrained.CUT)],
)
def test_an_answer_that_did_not_end_is_not_trained(kind: str, reason: Untrained) -> None:
    talk = talk_of("root", "append", kind)
    made = build_samples(talk.trajectory())
    assert [sample.calls for sample in made.samples] == [(0, 1)]
    assert [(span.call, span.reason) for span in made.untrained] == [(2, reason)]


def test_a_repeated_request_trains_the_answer_that_was_used() -> None:
    talk = talk_of("root", "append")
    talk.step("retry", at=1)
    talk.step("append")
    made = build_samples(talk.trajectory())
    assert [sample.calls for sample in made.samples] == [(0, 2, 3)]
    assert [(span.call, span.reason) for span in made.untrained] == [(1, Untrained.RETRIED)]


def test_tokens_without_log_probabilities_are_never_trained() -> None:
    talk = talk_of("root", "append")
    trajectory = talk.trajectory()
    blind = trajectory.calls[1].model_copy(update={"logprobs": None})
    mixed = trajectory.model_copy(update={"calls": (trajectory.calls[0], blind)})
    made = build_samples(mixed)
    assert [(span.call, span.reason) for span in made.untrained] == [(1, Untrained.UNSCORED)]
    none = trajectory.model_copy(
        update={"calls": tuple(call.model_copy(update={"logprobs": None}) for call in trajectory.calls)}
    )
    assert "no log-probabilities" in build_samples(none).unusable
    text = [
        call.model_copy(update={"completion_tokens": None, "logprobs": None}) for call in trajectory.calls
    ]
    assert "no token ids" in build_samples(trajectory.model_copy(update={"calls": tuple(text)})).unusable
    assert "no model call" in build_samples(Trajectory()).unusable


def test_a_missing_call_is_told() -> None:
    trajectory = next(
        made
        for seed in range(50)
        if (made := talk_of("root", "append", seed=seed).trajectory()).calls[1].messages.base == 0
    )
    with pytest.raises(RecordCorrupt, match="call 1 builds on call 0"):
        build_samples(trajectory.model_copy(update={"calls": trajectory.calls[1:]}))
