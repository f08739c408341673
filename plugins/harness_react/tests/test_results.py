"""Texts and pictures in results, and the system prompt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from orchard_harness_react.config import ReactConfig
from orchard_harness_react.content import cut
from orchard_harness_react.harness import React

from orchard_core import ConfigError, Image, Limits, Text, ToolResult
from orchard_core.testing import FakeTool

from .conftest import Play
from .model_server import calls

SUBMIT = calls(("submit", {}))
SHOT = FakeTool(
    "shot", lambda args: ToolResult(content=(Text(text="page"), Image(data=str(args["text"]).encode())))
)


def shot(name: str) -> Any:
    """An answer that asks for a picture."""
    return calls(("shot", {"text": name}))


def pictures(messages: list[dict[str, Any]]) -> list[str]:
    """What stands for each picture in a conversation."""
    parts = [
        part for message in messages if isinstance(message["content"], list) for part in message["content"]
    ]
    shown = [part["image_url"]["url"] if part["type"] == "image_url" else part["text"] for part in parts]
    return [text for text in shown if not text.startswith("Image from")]


async def test_a_picture_follows_its_result_in_a_message_of_the_user(play: Play) -> None:
    ran = await play(calls(("shot", {"text": "1"}), ("bash", {"command": "true"})), SUBMIT, brings=[SHOT])
    first, second, picture = ran.server.messages[-3:]
    assert first == {
        "role": "tool",
        "tool_call_id": "c0",
        "content": "page\n[image/png, 1 bytes: shown below]",
    }
    assert second["role"] == "tool"
    assert picture["role"] == "user"
    assert picture["content"] == [
        {"type": "text", "text": "Image from shot:"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,MQ=="}},
    ]


async def test_all_pictures_stay_unless_told_otherwise(play: Play) -> None:
    ran = await play(shot("1"), shot("2"), shot("3"), SUBMIT, brings=[SHOT])
    assert len(pictures(ran.server.messages)) == 3


async def test_only_the_last_pictures_stay_when_asked_for(play: Play) -> None:
    ran = await play(shot("1"), shot("2"), shot("3"), SUBMIT, brings=[SHOT], keep_images=2)
    gone, *kept = pictures(ran.server.messages)
    assert gone == "[an older image was left out]"
    assert kept == ["data:image/png;base64,Mg==", "data:image/png;base64,Mw=="]
    none = await play(shot("1"), SUBMIT, brings=[SHOT], keep_images=0)
    assert pictures(none.server.messages) == ["[an older image was left out]"]


async def test_a_long_result_of_a_task_s_tool_is_cut_to_head_and_tail(play: Play) -> None:
    long = FakeTool("long", lambda _: ToolResult.text("<" + "x" * 100_000 + ">"))
    ran = await play(calls(("long", {})), SUBMIT, brings=[long], observation_limit=1000)
    observation = ran.observation()
    assert len(observation) <= 1000
    assert observation[0] + observation[-1] == "<>"
    assert "100,002 characters in all" in observation


@pytest.mark.parametrize("size", [0, 1, 999, 1000, 1001, 1_000_000])
def test_a_cut_text_never_exceeds_its_limit_and_a_short_one_is_untouched(size: int) -> None:
    text = "abc" * (size // 3) + "d" * (size % 3)
    assert len(cut(text, 1000)) <= 1000
    assert (cut(text, 1000) == text) is (size <= 1000)


async def test_a_template_of_the_user_s_replaces_the_system_prompt(play: Play, tmp_path: Path) -> None:
    path = tmp_path / "mine.j2"
    path.write_text(
        "{{ task.id }} in {{ task.workdir }} with {{ tools|map(attribute='name')|join(' ') }}, "
        "{{ limits.turns }}, {{ protocol }}\n"
    )
    ran = await play(SUBMIT, system_template=path, tools=("bash", "submit"), limits=Limits(turns=4))
    assert ran.server.messages[0]["content"] == "t in /workspace with bash submit, 4, native"


def test_a_template_that_cannot_be_read_is_refused_before_anything_runs(tmp_path: Path) -> None:
    path = tmp_path / "bad.j2"
    path.write_text("fine\n{% if %}")
    with pytest.raises(ConfigError, match=r"bad\.j2:2"):
        React(ReactConfig(system_template=path))
    with pytest.raises(ConfigError, match=r"none\.j2"):
        React(ReactConfig(system_template=tmp_path / "none.j2"))


@pytest.mark.parametrize("text", ["{{ nothing }}", "{{ task.__class__.__mro__ }}", "{{ tools.append(1) }}"])
async def test_a_template_reaches_only_what_it_may(play: Play, tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.j2"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"bad\.j2"):
        await play(SUBMIT, system_template=path)
