"""A small environment of OpenEnv's: it adds up what it is given, and is done at 42."""

from __future__ import annotations

from typing import Any

from openenv.core.env_server import Action, Environment, Observation, State, create_fastapi_app


class Add(Action):
    """One step."""

    amount: int


class Total(Observation):
    """All so far."""

    total: int = 0


class Counter(Environment):
    """One episode."""

    def __init__(self) -> None:
        super().__init__()
        self._state = State(episode_id="one", step_count=0)
        self._total = 0

    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> Total:
        """See OpenEnv."""
        self._total = 0
        self._state = State(episode_id=episode_id or "one", step_count=0)
        return Total()

    def step(self, action: Add, timeout_s: float | None = None, **kwargs: Any) -> Total:
        """See OpenEnv."""
        self._total += action.amount
        self._state.step_count += 1
        return Total(total=self._total, reward=float(action.amount), done=self._total >= 42)

    @property
    def state(self) -> State:
        """See OpenEnv."""
        return self._state


app = create_fastapi_app(Counter, Add, Total)
