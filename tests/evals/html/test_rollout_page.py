"""A rollout's own page shows what was said, bounded, as text."""

from __future__ import annotations

import json

import pytest

from orchard_core import CallTimings, Dialect, Message, MessageRefs, ModelCall, Rollout, Trajectory
from orchard_core.evals.html import rollout_page
from orchard_core.evals.html.rollout_page import PIECE, preformatted, render_rollout

from ..making import make_rollout
from .making import NASTY
from .reading import Element, read


def with_calls(*answers: str, task: str = "t") -> Rollout:
    """Each call asks `go on` and gets one of the answers; they build on each other."""
    messages = {"ask": Message(role="user", raw=json.dumps({"role": "user", "content": "go on"}))}
    calls = []
    for index, answer in enumerate(answers):
        said = {"role": "assistant", "content": answer}
        messages[f"answer-{index}"] = Message(role="assistant", raw=json.dumps(said))
        refs = MessageRefs(added=("ask",))
        timings = CallTimings(started_at=1.0)
        response = f"answer-{index}"
        calls.append(
            ModelCall(index=index, dialect=Dialect.CHAT, messages=refs, response=response, timings=timings)
        )
    trajectory = Trajectory(calls=tuple(calls), messages=messages)
    return make_rollout(task).model_copy(update={"trajectory": trajectory})


def page(rollout: Rollout) -> Element:
    return read(render_rollout(rollout, command=None, back="../report.html#r1-1"))


def test_every_message_is_there_in_order() -> None:
    found = page(with_calls("first", "second"))
    assert [turn.one("h2").text.split()[:2] for turn in found.all("section", class_="turn")[:2]] == [
        ["Call", "0"],
        ["Call", "1"],
    ]
    assert [piece.text for piece in found.all("pre")][:4] == ["go on", "first", "go on", "second"]


def test_what_a_model_said_is_never_markup() -> None:
    found = page(with_calls(NASTY, task=NASTY))
    assert not found.all("script") + found.all("img")
    assert len(found.all("style")) == 1
    assert "<img src=x onerror=alert(1)>" in found.all("pre")[1].text
    assert "\u202e" not in found.text
    assert "\x1b" not in found.text


def test_a_long_message_loses_its_middle_and_says_how_much() -> None:
    text = preformatted("a" * PIECE + "b" * 1_000_000 + "c" * PIECE)
    assert len(text) < PIECE + 100
    assert text.startswith("aaa")
    assert text.endswith("ccc")
    assert f"{1_000_000 + 2 * PIECE - PIECE * 2 // 3 - PIECE // 3:,} characters left out" in text


def test_a_long_rollout_loses_its_end_and_says_so() -> None:
    fit = rollout_page.WHOLE // PIECE
    rollout = with_calls(*["x" * PIECE] * (fit + 10))
    text = render_rollout(rollout, command=None, back="")
    assert len(text) < rollout_page.WHOLE * 1.1
    shown = len(read(text).all("section", class_="turn"))
    assert f"{fit + 10 - shown} further calls left out" in read(text).text


@pytest.mark.parametrize("count", [0, 1])
def test_a_rollout_of_few_calls_is_a_page_too(count: int) -> None:
    assert page(with_calls(*["done"] * count)).one("h1").text == "t #0"
