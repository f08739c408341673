"""The models `oracle` and `noisy-oracle`: they play a task's known solution, one command a turn."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from orchard_core.errors import ModelRejected
from orchard_core.gateway.contract import SessionContext
from orchard_core.gateway.scripted.config import NoisyOracleConfig, OracleConfig
from orchard_core.gateway.scripted.conversation import Conversation
from orchard_core.gateway.scripted.noise import noisy_answer
from orchard_core.gateway.scripted.plan import Move, answer_to, gold_moves
from orchard_core.gateway.scripted.reply import Reply
from orchard_core.gateway.scripted.upstream import FreeModel, ScriptedUpstream
from orchard_core.types.task import Solution


class OracleModel(FreeModel):
    """Plays the known solution. Raises ModelRejected, at the first call, for a task that has none."""

    def __init__(self, config: OracleConfig | None = None, *, name: str = "oracle") -> None:
        super().__init__(name)
        self._thoughts = (config or OracleConfig()).thoughts

    def upstream(self, context: SessionContext) -> ScriptedUpstream:
        """A script made from the session's solution, which is read at the first call."""

        @cache
        def moves() -> Sequence[Move]:
            return gold_moves(_solution(context), thoughts=self._thoughts)

        return ScriptedUpstream(
            model=self.name, script=lambda conversation: self._answer(conversation, moves(), context)
        )

    def _answer(self, conversation: Conversation, gold: Sequence[Move], context: SessionContext) -> Reply:
        return answer_to(conversation, gold)


class NoisyOracleModel(OracleModel):
    """Plays the known solution with mistakes, the same ones for the same seeds."""

    def __init__(self, config: NoisyOracleConfig | None = None) -> None:
        self._config = config or NoisyOracleConfig()
        super().__init__(self._config, name="noisy-oracle")

    def _answer(self, conversation: Conversation, gold: Sequence[Move], context: SessionContext) -> Reply:
        task = context.task.id if context.task else ""
        seed = f"{self._config.seed}/{context.seed}/{task}"
        return noisy_answer(conversation, gold, rate=self._config.rate, seed=seed)


def _solution(context: SessionContext) -> Solution:
    solution = context.solution()
    if solution is not None:
        return solution
    task = context.task.id if context.task else "this session's task"
    raise ModelRejected(
        f"the oracle cannot play {task}: it has no known solution",
        status=422,
        hint="choose a model that can think, or leave the task out",
    )
