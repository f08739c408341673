"""The noisy oracle makes mistakes at a given rate, the same ones for the same seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from orchard_core import Solution, SolutionStep
from orchard_core.gateway.scripted import NoisyOracleConfig, NoisyOracleModel, OracleModel

from .conversations import BASH, SUBMIT, calls, context, play, say

SIX = Solution(steps=tuple(SolutionStep(command=f"echo {n} > f{n}", thought=f"File {n}.") for n in range(6)))
GOLD = [f"echo {n} > f{n}" for n in range(6)]


async def commands(rate: float, seed: int) -> list[str]:
    """Names and arguments of what one rollout calls."""
    model = NoisyOracleModel(NoisyOracleConfig(rate=rate))
    answers = await play(
        model, "You are an agent.", tools=[BASH, SUBMIT], within=context(SIX, seed), turns=20
    )
    return [f"{name} {args}" for answer in answers for name, args in calls(answer)]


async def test_at_rate_zero_it_is_the_oracle() -> None:
    answers = await play(OracleModel(), "You are an agent.", tools=[BASH, SUBMIT], within=context(SIX))
    assert await commands(0.0, 1) == [f"{name} {args}" for answer in answers for name, args in calls(answer)]


async def test_the_same_seed_makes_the_same_mistakes_and_another_seed_others() -> None:
    runs = [tuple(await commands(0.5, seed)) for seed in range(8)]
    assert runs == [tuple(await commands(0.5, seed)) for seed in range(8)]
    assert len(set(runs)) > 4


async def test_every_kind_of_mistake_happens() -> None:
    said = [await commands(0.6, seed) for seed in range(40)]
    seen = Counter[str]()
    for run in said:
        text = " ".join(run)
        done = sum(command in text for command in GOLD)
        seen["unknown tool"] += "bash_tool" in text
        seen["malformed"] += any(call.startswith('bash {"') for call in run)
        seen["typo"] += "--version" in text
        seen["wrong command"] += any(word in text for word in ("missing", "unlikely", "output/final"))
        seen["early submit"] += done < 6 and len(run) < 6
        seen["skipped step"] += any(GOLD[n] not in text and GOLD[n + 1] in text for n in range(5))
    assert set(seen) == {key for key, count in seen.items() if count}


async def test_some_rollouts_do_the_whole_task_and_some_do_not() -> None:
    said = [" ".join(await commands(0.3, seed)) for seed in range(30)]
    whole = [text for text in said if all(command in text for command in GOLD)]
    assert 3 < len(whole) < 27


async def test_it_always_comes_to_an_end() -> None:
    for seed in range(20):
        assert (await commands(1.0, seed))[-1].startswith("submit")


TAGGED = """<tools>
{"name": "bash", "parameters": {"properties": {"command": {}}, "required": ["command"]}}
{"name": "submit"}
</tools>"""


@pytest.mark.parametrize("prompt", ["Write\n```bash\nls\n```", TAGGED])
async def test_it_makes_the_same_mistakes_in_text(prompt: str) -> None:
    model = NoisyOracleModel(NoisyOracleConfig(rate=0.8))
    for seed in range(10):
        written = await play(model, prompt, within=context(SIX, seed), turns=30)
        native = await play(model, "", tools=[BASH, SUBMIT], within=context(SIX, seed), turns=30)
        thoughts = [answer["content"].split("\n\n")[0] for answer in written]
        assert thoughts == [answer["content"] for answer in native]


def beginning(answers: list[dict[str, Any]], prompt: str) -> list[dict[str, Any]]:
    """The conversation in which these answers were given."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": prompt}]
    for answer in answers:
        messages += [answer, {"role": "user", "content": "ok"}]
    return messages


def without_ids(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As a harness sends them back that makes ids of its own."""
    return [
        {**answer, "tool_calls": [{**call, "id": "x"} for call in answer.get("tool_calls", [])]}
        for answer in answers
    ]


@pytest.mark.parametrize("sent_back", [list, without_ids], ids=["ids kept", "ids dropped"])
@pytest.mark.parametrize(
    "prompt", ["", "Write\n```bash\nls\n```", TAGGED], ids=["native", "fenced", "tagged"]
)
async def test_what_comes_next_depends_on_the_place_and_the_seed_and_on_nothing_else(
    prompt: str, sent_back: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
) -> None:
    """So that a conversation begun with one seed goes on with another as the same policy would."""
    model, tools = NoisyOracleModel(NoisyOracleConfig(rate=0.6)), [BASH, SUBMIT] if prompt == "" else []
    next_after: dict[str, set[str]] = {}
    beginnings = 0
    for seed in range(12):
        answers = await play(model, prompt, tools=tools, within=context(SIX, seed), turns=30)
        for done in range(1, len(answers)):
            messages = beginning(sent_back(answers[:done]), prompt)
            said = await say(model, messages, within=context(SIX, 99), tools=tools)
            last = str(answers[done - 1]["content"]) + str(calls(answers[done - 1]))
            next_after.setdefault(last, set()).add(str(said["content"]) + str(calls(said)))
            beginnings += 1
    assert beginnings > 2 * len(next_after)
    assert {len(answers) for answers in next_after.values()} == {1}


async def test_a_step_is_not_played_twice_when_the_seed_changes() -> None:
    model = NoisyOracleModel(NoisyOracleConfig(rate=0.5))
    for seed in range(10):
        answers = await play(model, "", tools=[BASH, SUBMIT], within=context(SIX, seed), turns=30)
        half = len(answers) // 2
        messages = beginning(answers[:half], "")
        while len(answers := [m for m in messages if m["role"] == "assistant"]) < 30:
            said = await say(model, messages, within=context(SIX, seed + 50), tools=[BASH, SUBMIT])
            messages += [said, {"role": "user", "content": "ok"}]
            if calls(said)[0][0] == "submit":
                break
        played = [GOLD.index(args["command"]) for name, args in
                  (call for answer in answers for call in calls(answer))
                  if isinstance(args, dict) and args.get("command") in GOLD]  # fmt: skip
        assert played == sorted(set(played))
        assert calls(messages[-2])[0][0] == "submit"


@pytest.mark.parametrize("rate", [-0.1, 1.1])
def test_a_rate_is_a_probability(rate: float) -> None:
    with pytest.raises(ValidationError):
        NoisyOracleConfig(rate=rate)
