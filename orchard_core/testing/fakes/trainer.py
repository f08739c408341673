"""A trainer that adds numbers up, exactly and resumably."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from orchard_core.errors import ConfigError
from orchard_core.testing.fakes.feed import FakeFeed
from orchard_core.trainer.contract import Checkpoint, Feed, ScoredSample, TrainRequest


class FakeTrainer:
    """Honours `orchard_core.Trainer`. Its "weights" are a hash chain over the samples it was fed."""

    def __init__(self, *, save_every: int = 1) -> None:
        self._save_every = save_every

    @property
    def name(self) -> str:
        """See Trainer."""
        return "fake"

    async def train(self, request: TrainRequest) -> Checkpoint:
        """See Trainer."""
        feed = _check(request)
        last = _newest(request.out) if request.resume else None
        step = last.step if last else 0
        state = (Path(last.path) / "state").read_text() if last else f"{request.policy}:{request.seed}"
        if step < request.steps:
            async for batch in feed.batches(from_step=step):
                state, step = _digest(state, batch), step + 1
                if step % self._save_every == 0 or step == request.steps:
                    last = _save(request.out, step, state)
                if step >= request.steps:
                    break
        if last is None or step < request.steps:
            raise ConfigError(
                f"the feed ended after {step} of {request.steps} steps", hint="ask for fewer steps"
            )
        return last


def _check(request: TrainRequest) -> Feed:
    if request.steps < 1:
        raise ConfigError(f"steps is {request.steps}", hint="ask for at least 1")
    if request.options:
        names = ", ".join(sorted(request.options))
        raise ConfigError(f"the fake trainer has no option {names}", hint="leave `options` empty")
    if not isinstance(request.feed, FakeFeed):
        raise ConfigError("the fake trainer takes a feed of samples", hint="pass a FakeFeed")
    return request.feed


def _digest(state: str, batch: Iterable[ScoredSample]) -> str:
    text = state + "".join(f"{item.sample.model_dump_json()}*{item.weight}" for item in batch)
    return hashlib.sha256(text.encode()).hexdigest()


def _save(out: Path, step: int, state: str) -> Checkpoint:
    home = out / f"step-{step:06d}"
    home.mkdir(parents=True, exist_ok=True)
    (home / "state").write_text(state)
    checkpoint = Checkpoint(path=str(home), step=step, version=str(step), metrics={"loss": 1 / step})
    (home / "checkpoint.json").write_text(checkpoint.model_dump_json())
    return checkpoint


def _newest(out: Path) -> Checkpoint | None:
    saved = sorted(out.glob("step-*/checkpoint.json"))
    return Checkpoint.model_validate_json(saved[-1].read_text()) if saved else None
