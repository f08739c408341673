"""The contract suite of trainers."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from orchard_core.errors import ConfigError, OrchardError
from orchard_core.testing.fakes.feed import FakeFeed
from orchard_core.trainer.contract import Checkpoint, Trainer, TrainRequest


@pytest.mark.asyncio
class TrainerSuite:
    """Subclasses give the fixture `trainer`, and where the fake feed does not serve, `feed` and `policy`."""

    steps: ClassVar[int] = 4
    """Steps of a whole run: at least 3."""
    options: ClassVar[Mapping[str, object]] = {}
    """The trainer's own options."""

    @pytest.fixture
    def policy(self) -> str:
        """The model directory or name to start from."""
        return "fake-policy"

    def feed(self, *, fail_at: int | None = None) -> FakeFeed:
        """A fresh feed with the same data every time."""
        return FakeFeed(steps=self.steps * 2, fail_at=fail_at)

    def fingerprint(self, checkpoint: Checkpoint) -> str:
        """What two equal models have in common: by default a hash of the checkpoint's files."""
        seen = hashlib.sha256()
        for path in sorted(Path(checkpoint.path).rglob("*")):
            if path.is_file() and path.name != "checkpoint.json":
                seen.update(str(path.relative_to(checkpoint.path)).encode() + path.read_bytes())
        return seen.hexdigest()

    def request(self, policy: str, out: Path, **fields: Any) -> TrainRequest:
        """A request for a whole run, `fields` changed."""
        given = {"feed": self.feed(), "steps": self.steps, "options": self.options, **fields}
        return TrainRequest(policy=policy, out=out, **given)

    async def test_training_ends_in_a_checkpoint(self, trainer: Trainer, policy: str, tmp_path: Path) -> None:
        """The checkpoint is the product: it lies under `out`, at the step asked for, with a version."""
        assert isinstance(trainer, Trainer)
        last = await trainer.train(self.request(policy, tmp_path / "run"))
        assert last.step == self.steps
        assert last.version
        assert Path(last.path).is_dir()
        assert Path(last.path).resolve().is_relative_to((tmp_path / "run").resolve())

    async def test_every_step_takes_its_own_batch(
        self, trainer: Trainer, policy: str, tmp_path: Path
    ) -> None:
        """A batch trained twice or skipped changes the result: one list a step, in order."""
        feed = self.feed()
        await trainer.train(self.request(policy, tmp_path / "run", feed=feed))
        assert feed.given[: self.steps] == list(range(self.steps))

    async def test_the_same_seed_gives_the_same_model(
        self, trainer: Trainer, policy: str, tmp_path: Path
    ) -> None:
        """Runs must be comparable: draw from the request's seed alone."""
        one = await trainer.train(self.request(policy, tmp_path / "one", seed=7))
        two = await trainer.train(self.request(policy, tmp_path / "two", seed=7))
        assert self.fingerprint(one) == self.fingerprint(two)

    async def test_training_changes_the_model(self, trainer: Trainer, policy: str, tmp_path: Path) -> None:
        """A loop that never steps its optimiser ends quietly: more steps give another model."""
        one = await trainer.train(self.request(policy, tmp_path / "one", steps=1))
        two = await trainer.train(self.request(policy, tmp_path / "two"))
        assert self.fingerprint(one) != self.fingerprint(two)

    @pytest.mark.parametrize("fail_at", [1, 2])
    async def test_a_resumed_run_equals_one_that_was_never_cut(
        self, trainer: Trainer, policy: str, tmp_path: Path, fail_at: int
    ) -> None:
        """Long runs are killed: optimiser, schedule, draws and data must all continue where they stood."""
        whole = await trainer.train(self.request(policy, tmp_path / "whole"))
        with pytest.raises(OrchardError):
            await trainer.train(self.request(policy, tmp_path / "cut", feed=self.feed(fail_at=fail_at)))
        rest = await trainer.train(self.request(policy, tmp_path / "cut", resume=True))
        assert rest.step == whole.step
        assert self.fingerprint(rest) == self.fingerprint(whole)

    async def test_a_cancelled_run_can_be_resumed(
        self, trainer: Trainer, policy: str, tmp_path: Path
    ) -> None:
        """Ctrl-C in the middle of a save must leave a checkpoint that loads: rename it into place."""
        whole = await trainer.train(self.request(policy, tmp_path / "whole"))
        running = asyncio.create_task(trainer.train(self.request(policy, tmp_path / "cut")))
        await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        rest = await trainer.train(self.request(policy, tmp_path / "cut", resume=True))
        assert self.fingerprint(rest) == self.fingerprint(whole)

    async def test_resuming_what_is_done_trains_nothing(
        self, trainer: Trainer, policy: str, tmp_path: Path
    ) -> None:
        """A job that is started again after its end must not train on: return the last checkpoint."""
        done = await trainer.train(self.request(policy, tmp_path / "run"))
        before = self.fingerprint(done)
        feed = self.feed()
        again = await trainer.train(self.request(policy, tmp_path / "run", resume=True, feed=feed))
        assert (again.step, self.fingerprint(again)) == (self.steps, before)
        assert feed.given == []

    async def test_resuming_nothing_starts_from_the_beginning(
        self, trainer: Trainer, policy: str, tmp_path: Path
    ) -> None:
        """`resume` is set once in a job's script: the first start finds nothing and is no error."""
        last = await trainer.train(self.request(policy, tmp_path / "run", resume=True))
        assert last.step == self.steps

    async def test_a_run_may_be_made_longer(self, trainer: Trainer, policy: str, tmp_path: Path) -> None:
        """More steps on the same directory continue the run."""
        await trainer.train(self.request(policy, tmp_path / "run", steps=2))
        last = await trainer.train(self.request(policy, tmp_path / "run", resume=True))
        assert last.step == self.steps

    async def test_a_request_that_cannot_be_met_is_refused_first(
        self, trainer: Trainer, policy: str, tmp_path: Path
    ) -> None:
        """A misspelt option found after an hour costs an hour: raise ConfigError before a batch is taken."""
        for wrong in ({"steps": 0}, {"options": {**self.options, "no_such_option": 1}}):
            feed = self.feed()
            with pytest.raises(ConfigError):
                await trainer.train(self.request(policy, tmp_path / "run", **{"feed": feed, **wrong}))
            assert feed.given == []
