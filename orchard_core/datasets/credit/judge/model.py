"""A judge that is any model, asked through the gateway in recorded sessions that are never training data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

from pydantic import Field, JsonValue

from orchard_core.datasets.credit.estimator import CostPlan
from orchard_core.datasets.credit.judge.answer import AnswerFault, key_steps
from orchard_core.datasets.credit.judge.contract import Judgement
from orchard_core.datasets.credit.judge.prompt import Prompt, make_prompt
from orchard_core.datasets.credit.judge.template import LATEST, template
from orchard_core.datasets.credit.judge.view import GoldOutcome, TrajectoryView
from orchard_core.errors import BudgetExceeded, ContextExceeded, ModelError
from orchard_core.gateway.contract import Model, SessionContext
from orchard_core.harness.chat_client import ChatClient
from orchard_core.rollout.session import ModelGateway, ModelSession
from orchard_core.rollout.text import excerpt
from orchard_core.types.base import Record
from orchard_core.types.harness import Limits
from orchard_core.types.model import Usage
from orchard_core.types.trajectory import Trajectory

TOKENS_A_STEP = 60
"""Tokens that a key step of an answer is taken to have in the estimate of cost."""
STEPS_EXPECTED = 12
"""Key steps that an answer is taken to have at most in the estimate of cost."""


_ECHO = 20_000
"""Characters of an answer that cannot be used that it is shown of it again."""


class JudgeSettings(Record):
    """What decides a model judge's values."""

    judge: str
    """The model as the user named it; `self`: the one that acted."""
    options: Mapping[str, JsonValue] = Field(default_factory=dict)
    """Its options; never secrets."""
    params: Mapping[str, JsonValue] = Field(default_factory=dict)
    """Members of the request, such as `temperature`."""
    template: int = LATEST
    """Number of the prompt."""
    context_tokens: int = Field(default=100_000, ge=1_000)
    """The longest prompt, in estimated tokens; long texts are shortened until it fits."""
    repairs: int = Field(default=1, ge=0, le=1)
    """How often an answer that cannot be used is sent back."""


class ModelJudge:
    """Honours `Judge`. One session of one or two calls for each rollout."""

    def __init__(
        self, settings: JudgeSettings, *, gateway: ModelGateway, model_for: Callable[[TrajectoryView], Model]
    ) -> None:
        """`model_for` gives the model that judges a trajectory; whoever made it closes it. Raises ConfigError
        for an unknown template."""
        self._settings = settings
        self._template = template(settings.template)
        self._gateway = gateway
        self._model_for = model_for

    @property
    def settings(self) -> Mapping[str, JsonValue]:
        """Model, request, prompt and budget."""
        return {**self._settings.model_dump(mode="json"), "template_sha256": self._template.sha256}

    def cost(self, view: TrajectoryView, outcome: GoldOutcome) -> CostPlan:
        """One call: the prompt as estimated, and an answer of a dozen key steps. Repairs come on top."""
        prompt = self._prompt(view, outcome)
        if prompt is None:
            return CostPlan(items=1)
        price = self._model_for(view).price
        told = Usage(input=prompt.tokens, output=TOKENS_A_STEP * min(len(view.turns) + 1, STEPS_EXPECTED))
        return CostPlan(
            items=1,
            calls=1,
            input_tokens=told.input,
            output_tokens=told.output,
            cost_usd=price.cost(told) if price else None,
        )

    async def judge(self, view: TrajectoryView, outcome: GoldOutcome) -> Judgement:
        """Ask, and once more when the answer cannot be used."""
        prompt = self._prompt(view, outcome)
        if prompt is None:
            limit = self._settings.context_tokens
            return Judgement(error=f"it is longer than {limit} tokens even when shortened (--context-tokens)")
        context = SessionContext(rollout=f"{view.rollout}-judge", task=view.task, seed=view.seed)
        limits = Limits(calls=1 + self._settings.repairs)
        session = await self._gateway.open_session(self._model_for(view), context, limits=limits)
        answers: list[str] = []
        async with AsyncExitStack() as stack:
            stack.push_async_callback(session.close)
            found = await self._asked(session, prompt, len(view.turns), answers)
        recorded = session.trajectory()
        return replace(
            found,
            cost_usd=_cost(recorded),
            usage=recorded.usage,
            answers=tuple(answers),
            prompt_sha256=prompt.sha256,
        )

    async def close(self) -> None:
        """Nothing is held: gateway and models are their owner's."""

    def _prompt(self, view: TrajectoryView, outcome: GoldOutcome) -> Prompt | None:
        return make_prompt(self._template, view, outcome, context_tokens=self._settings.context_tokens)

    async def _asked(
        self, session: ModelSession, prompt: Prompt, turns: int, answers: list[str]
    ) -> Judgement:
        """The steps or the error; `answers` takes what was said, also when it then fails."""
        messages = [_message("system", prompt.system), _message("user", prompt.user)]
        try:
            async with ChatClient(session.endpoint) as chat:
                return await self._until_usable(chat, session.endpoint.model, messages, turns, answers)
        except (ContextExceeded, BudgetExceeded) as error:
            return Judgement(error=f"the judge cannot be asked: {error.message} (--context-tokens)")
        except ModelError as error:
            return Judgement(error=f"the judge could not be had: {error.message}", again=True)

    async def _until_usable(
        self, chat: ChatClient, model: str, messages: list[dict[str, str]], turns: int, answers: list[str]
    ) -> Judgement:
        fault = ""
        for _ in range(1 + self._settings.repairs):
            answer = await chat.ask({**self._settings.params, "model": model, "messages": messages})
            text = _text(answer)
            answers.append(text)
            if refusal := _unusable(answer):
                return Judgement(error=refusal)
            try:
                return Judgement(steps=key_steps(text, turns))
            except AnswerFault as error:
                fault = str(error)
            repair = self._template.fill("repair", {"fault": fault, "turns": str(turns)})
            messages += [_message("assistant", excerpt(text, _ECHO)), _message("user", repair)]
        return Judgement(error=f"the judge's answer cannot be used: {fault}")


def _cost(recorded: Trajectory) -> float | None:
    """US dollars of the answers; a call without one is taken to be free. None: a price is unknown."""
    answered = tuple(call for call in recorded.calls if call.response is not None)
    return recorded.model_copy(update={"calls": answered}).cost_usd


def _message(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": text}


def _text(answer: Mapping[str, Any]) -> str:
    content = answer["choices"][0]["message"]["content"]
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content or ""


def _unusable(answer: Mapping[str, Any]) -> str:
    """Why asking again would not help; empty: it might."""
    choice = answer["choices"][0]
    if choice["message"].get("refusal") or choice.get("finish_reason") == "content_filter":
        return "the judge refused to answer"
    if choice.get("finish_reason") == "length":
        return "the judge's answer was cut at its longest length (--param max_tokens=N raises it)"
    return ""
