"""What the real harnesses send, recorded, goes through the gateway as it did when it was recorded.

`record.py` makes the files anew, after a harness or a translation has changed; the difference is then read.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.golden.replay import HERE, Exchange, load, replay
from tests.gateway.golden.scrub import OURS, scrub

FILES = sorted(HERE.glob("*.json"))
KNOWN_DROPS = frozenset({
    "client_metadata",
    "context_management",
    "messages.content.cache_control",
    "metadata",
    "prompt_cache_key",
    "system.billing_header",
    "system.cache_control",
    "thinking",
    "tools.namespace.description",
    "tools.web_search",
})  # fmt: skip
"""What chat completions cannot say, of all that these harnesses send. A new name here is to be looked at."""
SPOKEN = frozenset({"content", "text", "delta", "arguments"})
RANDOM = re.compile(r"\b([a-z]+)_[0-9a-f]{24,32}\b")
VOLATILE = frozenset({"created", "created_at", "completed_at"})


def steady(answer: str) -> list[Any]:
    """The JSON objects of a body or an event stream, without clocks and random ids."""
    lines = [line.removeprefix("data:").strip() for line in answer.splitlines() if line.strip()]
    found = [json.loads(line) if line.startswith("{") else line for line in lines]
    return [_steady(each) for each in found]


def _steady(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _steady(inner) for name, inner in value.items() if name not in VOLATILE}
    if isinstance(value, list):
        return [_steady(inner) for inner in value]
    return RANDOM.sub(r"\1_", value) if isinstance(value, str) else value


def texts(value: Any, keys: frozenset[str] | None = None) -> list[str]:
    """Every string in it, or only those under certain keys."""
    if isinstance(value, dict):
        kept = {n: v for n, v in value.items() if keys is None or n in keys or not isinstance(v, str)}
        return [text for inner in kept.values() for text in texts(inner, keys)]
    if isinstance(value, list):
        return [text for inner in value for text in texts(inner, keys)]
    return [value] if isinstance(value, str) else []


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def golden(request: pytest.FixtureRequest) -> list[Exchange]:
    path: Path = request.param
    return load(path)


async def test_the_same_requests_get_the_same_answers_and_show_the_model_the_same(
    golden: list[Exchange],
) -> None:
    for was, now in zip(golden, await replay(golden), strict=True):
        assert (now.method, now.path, now.status) == (was.method, was.path, was.status)
        assert now.heard == was.heard
        assert dict(now.dropped) == dict(was.dropped)
        assert steady(now.answer) == steady(was.answer)


def test_nothing_unexpected_is_dropped(golden: list[Exchange]) -> None:
    assert {name for each in golden for name in each.dropped} <= KNOWN_DROPS


def test_the_task_is_played_to_its_end(golden: list[Exchange]) -> None:
    calls = [each for each in golden if each.heard]
    assert all(each.status == 200 for each in calls)
    assert "forty-two" in "".join(texts(steady(calls[-1].answer), SPOKEN))


def test_what_the_model_said_comes_back_to_it_unchanged(golden: list[Exchange]) -> None:
    """Its words and its calls; the arguments' own JSON is written anew by some."""
    *_, last = [each for each in golden if each.heard]
    said = [message for message in last.heard if message["role"] == "assistant"]
    (call,) = [call for message in said for call in message.get("tool_calls", ())]
    arguments = json.loads(call["function"]["arguments"])
    assert "printf 42 > answer.txt" in arguments.values()
    assert said[0]["content"] == "On with it."


def test_no_foreign_prose_is_kept(golden: list[Exchange]) -> None:
    for each in golden:
        assert scrub(each.request) == each.request
        for text in texts(each.request):
            assert len(text.split()) < 8 or any(ours and ours in text for ours in OURS)
