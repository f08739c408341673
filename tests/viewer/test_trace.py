"""A conversation made ready to be read: messages of every dialect, where they stand, curves, hidden signs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from markupsafe import Markup

from orchard_core import ValuePoint
from orchard_core.viewer.curve_svg import MOST, draw
from orchard_core.viewer.keys import key_of
from orchard_core.viewer.pieces import Piece, pieces
from orchard_core.viewer.trace.curves import credit_curve, row_curve
from orchard_core.viewer.trace.cutting import BRIEF, HEAD, LINES, Room
from orchard_core.viewer.trace.layout import layout, main_calls
from orchard_core.viewer.trace.parts import Curve, Said, TurnView
from orchard_core.viewer.trace.rollout import ReadRollout, rollout_trace
from orchard_core.viewer.visible import one_line, plain, visible

from .making import Recorder, answer, make_credit, make_rollout, tool, worked


def told(raw: Any) -> list[tuple[str, str]]:
    return [(piece.kind, piece.text) for piece in pieces(json.dumps(raw))]


def test_a_chat_answer_is_thought_text_and_calls_in_order() -> None:
    assert told(answer("said", "ls", "pwd", thought="hm")) == [
        ("thought", "hm"),
        ("text", "said"),
        ("call", '{"command": "ls"}'),
        ("call", '{"command": "pwd"}'),
    ]


def test_anthropic_blocks_are_read() -> None:
    content = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "said"},
        {"type": "tool_use", "id": "t1", "name": "bash", "input": {"command": "ls"}},
    ]
    found = pieces(json.dumps({"role": "assistant", "content": content}))
    assert [piece.kind for piece in found] == ["thought", "text", "call"]
    assert (found[2].name, found[2].call_id, json.loads(found[2].text)) == ("bash", "t1", {"command": "ls"})
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    result = {
        "type": "tool_result",
        "tool_use_id": "t1",
        "is_error": True,
        "content": [{"type": "text", "text": "no"}, picture],
    }
    back = pieces(json.dumps({"role": "user", "content": [result]}))
    assert [(piece.kind, piece.failed) for piece in back] == [("result", True), ("image", False)]
    assert back[1].text == "data:image/png;base64,AAAA"


def test_items_of_responses_are_read() -> None:
    assert told({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}) == [
        ("thought", "hm")
    ]
    assert told({"type": "function_call", "name": "sh", "arguments": "{}", "call_id": "c"}) == [
        ("call", "{}")
    ]
    assert told({"type": "function_call_output", "call_id": "c", "output": "out"}) == [("result", "out")]
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
    assert told(said) == [("text", "hi")]
    seen = {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AA"}]}
    assert told(seen) == [("image", "data:image/png;base64,AA")]


def test_observations_stand_with_the_call_they_answer_and_an_echo_is_not_said_twice() -> None:
    places = layout(worked(3, side=False))
    assert [len(place.before) for place in places] == [2, 0, 0]
    assert [len(place.after) for place in places] == [1, 1, 0]
    assert [place.follows for place in places] == [None, 0, 1]


def test_what_nothing_follows_takes_the_cores_own_log() -> None:
    recorder = Recorder()
    recorder.call([{"role": "user", "content": "go"}], answer("on", "ls"))
    (place,) = layout(recorder.trajectory(last=[tool("seen")]))
    assert len(place.after) == 1


def test_two_that_follow_one_call_keep_what_each_was_told() -> None:
    recorder = Recorder()
    first = recorder.call([{"role": "user", "content": "go"}], answer("on", "ls"))
    recorder.call([tool("left")], answer("a"), base=first)
    recorder.call([tool("right")], answer("b"), base=first)
    places = layout(recorder.trajectory())
    assert [len(place.after) for place in places] == [1, 0, 0]
    assert [len(place.before) for place in places] == [1, 0, 1]


def test_the_longest_conversation_is_the_main_one() -> None:
    assert main_calls(layout(worked(4))) == [1, 2, 3, 4]
    assert main_calls([]) == []


def test_steps_and_credit_are_those_of_the_main_conversation() -> None:
    rollout = make_rollout()
    trace = rollout_trace(ReadRollout(rollout), {"branch": make_credit(rollout.id)})
    assert [turn.step for turn in trace.turns] == [None, 0, 1, 2, 3, 4, 5]
    assert [turn.credited for turn in trace.turns] == [None, False, False, True, True, True, False]
    assert trace.turns[0].thread == "side 1"
    assert trace.turns[3].value == pytest.approx(trace.curves[0].points[2].value)
    bare = rollout_trace(ReadRollout(rollout), {}, samples=False)
    assert [turn.step for turn in bare.turns] == [None, 0, 1, 2, 3, 4, 5]
    assert bare.samples == ""


def test_a_long_text_keeps_beginning_and_end_by_lines_and_by_characters() -> None:
    text = "\n".join(f"line {n}" for n in range(1000))
    shown = Room().show(Piece(kind="text", text=text), "x")
    assert shown.head.count("\n") == LINES - 1
    assert shown.tail.endswith("line 999")
    assert shown.left_out == len(text) - len(shown.head) - len(shown.tail)
    flat = Room().show(Piece(kind="text", text="a" * 9_000), "x")
    assert len(flat.head) == HEAD
    assert Room().show(Piece(kind="text", text="short\n"), "x").left_out == 0


def test_a_page_without_room_shows_a_little_of_each() -> None:
    room = Room(10)
    room.show(Piece(kind="text", text="a" * 100), "x")
    assert len(room.show(Piece(kind="text", text="b" * 5_000), "y").head) == BRIEF


def test_a_curve_is_drawn_without_text_in_it() -> None:
    curve = credit_curve("branch", make_credit("x"), range(1, 7))
    drawn = draw(curve)
    assert drawn.count("<a ") == 6
    assert 'href="#turn-6"' in drawn
    assert "<text" not in drawn
    assert draw(Curve(name="none")) == ""
    assert draw(credit_curve("bad", "cannot be read", ())) == ""


def test_settings_of_a_credit_are_told_in_words() -> None:
    settings = {"rise_by": "value", "modes": {"restore": 40}, "keep": False, "state": None, "width": 0.0}
    curve = credit_curve("branch", make_credit("x").model_copy(update={"settings": settings}), range(6))
    told = dict(curve.facts)
    assert told["rise by"] == "value"
    assert (told["modes"], told["keep"], told["width"]) == ("40 restore", "no", "0")
    assert "state" not in told


def test_a_call_without_arguments_is_named_in_the_outline() -> None:
    room = Room()
    for text, gist in (("{}", "submit"), ('{"path": "notes"}', "notes"), ("not json", "not json")):
        piece = room.show(Piece(kind="call", name="submit", text=text), "x")
        said = Said(role="assistant", pieces=(piece,))
        assert TurnView(number=0, step=0, before=(), answer=said, after=()).gist == gist


def test_a_very_long_curve_is_thinned_and_odd_values_stay_inside() -> None:
    values = [3.0 if n % 2 else -1.0 for n in range(5_001)]
    drawn = draw(row_curve("x", values, [1] * 5_000))
    assert drawn.count("<a ") <= MOST + 1
    odd = Curve(name="x", points=[ValuePoint(turn=0, value=0.5), ValuePoint(turn=0, value=0.5)])
    assert "nan" not in draw(odd).lower()


def test_hidden_characters_are_told_in_words_and_can_be_encoded() -> None:
    text = "a\x1b[31m\u202eb\ud800\x00\r\nc\td\x7f"
    assert plain(text) == "a⟨ESC⟩[31m⟨U+202E⟩b⟨U+D800⟩⟨NUL⟩\nc\td⟨U+007F⟩"
    assert isinstance(visible(text), Markup)
    assert 'title="right-to-left override"' in visible(text)
    assert visible("<b>&\u202e<i>").startswith("&lt;b&gt;&amp;<span")
    assert one_line("a\n b\x00" * 100, 12) == "a b⟨NUL⟩a b…"


@pytest.mark.parametrize("name", ["a", "0123abc_-", "x" * 80])
def test_a_plain_id_is_its_own_key(name: str) -> None:
    assert key_of(name) == name


@pytest.mark.parametrize("name", ["~x", "matrix", "a.b", "", "x" * 81, "\ud800"])
def test_any_other_id_has_a_key_that_is_safe_in_an_address(name: str) -> None:
    key = key_of(name)
    assert key.startswith("~")
    assert key.isascii()
    assert not set(key) & set("/.?#%")
    assert key != "matrix"
