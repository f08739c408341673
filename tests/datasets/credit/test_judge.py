"""A model as a judge, through the real gateway: good answers, repaired ones, all else as an error."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from orchard_core import Credit, Gateway, Model, ModelError, ModelRejected, ModelUnavailable, Price
from orchard_core.datasets.credit.estimator import Estimator
from orchard_core.datasets.credit.judge.contract import Judge
from orchard_core.datasets.credit.judge.estimator import JudgeEstimator
from orchard_core.datasets.credit.judge.model import JudgeSettings, ModelJudge
from orchard_core.datasets.credit.rules import CreditRules
from orchard_core.errors import ContextExceeded
from orchard_core.gateway.retry import RetryPolicy
from orchard_core.gateway.scripted import Conversation, Reply, ScriptedModel
from orchard_core.gateway.scripted.replies import Replies

from .making import make_item, make_rollout, steps

GOOD = steps((0, 0.2), (2, 0.6), (3, 0.3))


class Priced(ScriptedModel):
    """A script that costs 2 dollars a million tokens in, 10 out."""

    @property
    def price(self) -> Price | None:
        return Price(input=2.0, output=10.0)


@pytest.fixture
async def gateway() -> AsyncIterator[Gateway]:
    async with Gateway(retry=RetryPolicy(attempts=2, base_s=0.0)) as running:
        yield running


def judged_by(gateway: Gateway, model: Model, **settings: object) -> JudgeEstimator:
    asked = JudgeSettings(judge="scripted", **settings)  # type: ignore[arg-type]
    return JudgeEstimator(ModelJudge(asked, gateway=gateway, model_for=lambda _: model), CreditRules())


async def credited(gateway: Gateway, replies: Replies, *, turns: int = 4, **settings: object) -> Credit:
    return await judged_by(gateway, Priced(replies), **settings).estimate(
        make_item(make_rollout(turns=turns))
    )


async def test_an_unresolved_rollout_gets_a_curve_rises_and_a_mask(gateway: Gateway) -> None:
    credit = await credited(gateway, [GOOD])
    assert credit.error == ""
    assert credit.values == pytest.approx((0.2, 0.4, 0.6, 0.3, 0.0))
    assert [(rise.start, rise.stop) for rise in credit.segments] == [(0, 2)]
    assert credit.mask == (1, 1, 0, 0)
    assert [point.reason for point in credit.points if point.estimated] == ["at 0", "at 2", "at 3"]
    assert credit.estimator == "judge"
    assert credit.cost_usd is not None
    assert credit.cost_usd > 0


async def test_the_judge_is_asked_with_the_prompt_and_the_members_given(gateway: Gateway) -> None:
    heard: list[Conversation] = []

    def answer(conversation: Conversation) -> str:
        heard.append(conversation)
        return GOOD

    await credited(gateway, answer, params={"temperature": 0, "max_tokens": 900})
    (asked,) = heard
    assert [message["role"] for message in asked.messages] == ["system", "user"]
    assert "turn 3: the agent's answer" in str(asked.messages[1]["content"])
    assert (asked.body["temperature"], asked.body["max_tokens"]) == (0, 900)
    assert "tools" not in asked.body


async def test_an_answer_that_cannot_be_used_is_sent_back_once_with_what_is_wrong(gateway: Gateway) -> None:
    heard: list[Conversation] = []

    def answer(conversation: Conversation) -> str:
        heard.append(conversation)
        return GOOD if conversation.index else "0.5, I think."

    credit = await credited(gateway, answer)
    assert credit.error == ""
    assert len(heard) == 2
    repair = heard[1].messages
    assert [message["role"] for message in repair] == ["system", "user", "assistant", "user"]
    assert repair[2]["content"] == "0.5, I think."
    assert "it is not JSON" in str(repair[3]["content"])


@pytest.mark.parametrize(
    ("replies", "error"),
    [
        (["no", "still no"], "the judge's answer cannot be used: it is not JSON"),
        (["no", steps((0, 1.5))], "not from 0 to 1"),
        ([steps((9, 0.5)), steps((5, 0.5))], "turn 5 is no integer from 0 to 4"),
        (["", ""], "it is empty"),
        ([Reply(text=GOOD, finish_reason="content_filter")], "refused"),
        ([Reply(text=GOOD[:-9], finish_reason="length")], "cut at its longest length"),
    ],
)
async def test_what_is_malformed_refused_or_out_of_range_is_an_error_and_never_guessed(
    gateway: Gateway, replies: list[Reply | str | ModelError], error: str
) -> None:
    credit = await credited(gateway, replies)
    assert error in credit.error
    assert not credit.again
    assert credit.points == ()
    assert credit.mask == (0, 0, 0, 0)
    assert credit.cost_usd is not None
    assert credit.cost_usd > 0  # it was paid for all the same


async def test_an_endless_answer_is_sent_back_and_kept_in_part(gateway: Gateway, tmp_path: Path) -> None:
    heard: list[Conversation] = []

    def answer(conversation: Conversation) -> str:
        heard.append(conversation)
        return GOOD if conversation.index else "0.5, " * 1_000_000

    credit = await judged_by(gateway, Priced(answer)).estimate(make_item(make_rollout(), tmp_path))
    assert credit.error == ""
    assert len(str(heard[1].messages[2]["content"])) < 21_000
    assert (tmp_path / "answers.jsonl").stat().st_size < 1_100_000


async def test_a_judge_that_cannot_be_had_is_to_be_asked_again(gateway: Gateway) -> None:
    credit = await credited(gateway, [ModelUnavailable("overloaded")])
    assert credit.again
    assert "the judge could not be had" in credit.error
    assert sum(credit.mask) == 0
    assert credit.cost_usd == 0.0  # nothing was answered
    refused = await credited(gateway, [ModelRejected("no such model", status=404)])
    assert refused.again


async def test_a_judge_whose_context_is_too_short_is_not_asked_again(gateway: Gateway) -> None:
    credit = await credited(
        gateway, [ContextExceeded("the maximum context length is 8192 tokens", status=400)]
    )
    assert not credit.again
    assert "--context-tokens" in credit.error


async def test_what_fits_no_context_is_an_error_without_a_call(gateway: Gateway) -> None:
    credit = await credited(gateway, [], turns=400, context_tokens=2_000)
    assert "longer than 2000 tokens even when shortened" in credit.error
    assert credit.cost_usd == 0.0


async def test_what_was_answered_is_noted_word_for_word_even_after_a_torn_line(
    gateway: Gateway, tmp_path: Path
) -> None:
    judge = judged_by(gateway, Priced(["no", GOOD]))
    (tmp_path / "answers.jsonl").write_text('{"torn')
    credit = await judge.estimate(make_item(make_rollout(), tmp_path))
    torn, line = (tmp_path / "answers.jsonl").read_text().splitlines()
    assert torn == '{"torn'
    noted = json.loads(line)
    assert noted["answers"] == ["no", GOOD]
    assert (noted["rollout"], noted["cost_usd"]) == ("one", credit.cost_usd)
    assert noted["prompt_sha256"] == credit.settings["prompt_sha256"]


async def test_the_cost_is_told_before_a_call_and_is_near_what_it_then_is(gateway: Gateway) -> None:
    judge = judged_by(gateway, Priced([GOOD]))
    item = make_item(make_rollout(turns=4, observation="x" * 8_000))
    plan = await judge.plan([item, item])
    assert (plan.items, plan.calls) == (2, 2)
    assert plan.cost_usd == pytest.approx((plan.input_tokens * 2 + plan.output_tokens * 10) / 1e6)
    credit = await judge.estimate(item)
    assert credit.cost_usd is not None
    assert plan.cost_usd is not None
    assert 0.5 < plan.cost_usd / 2 / credit.cost_usd < 2


async def test_without_a_price_the_cost_is_unknown_and_not_nothing(gateway: Gateway) -> None:
    class Unpriced(ScriptedModel):
        @property
        def price(self) -> Price | None:
            return None

    judge = judged_by(gateway, Unpriced([GOOD]))
    item = make_item(make_rollout())
    assert (await judge.plan([item])).cost_usd is None
    assert (await judge.estimate(item)).cost_usd is None


async def test_settings_name_everything_that_decides_the_result(gateway: Gateway) -> None:
    judge = judged_by(gateway, Priced([]), params={"temperature": 0})
    told = judge.settings
    assert told.keys() >= {"judge", "options", "params", "template", "template_sha256", "context_tokens"}
    assert told.keys() >= {"epsilon", "interpolation", "end", "merge", "repairs"}


async def test_the_contracts_are_honoured(gateway: Gateway) -> None:
    settings = JudgeSettings(judge="scripted")
    judge = ModelJudge(settings, gateway=gateway, model_for=lambda _: ScriptedModel([]))
    assert isinstance(judge, Judge)
    assert isinstance(JudgeEstimator(judge, CreditRules()), Estimator)
