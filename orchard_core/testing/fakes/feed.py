"""A deterministic feed of tiny samples."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

from orchard_core.errors import OrchardError
from orchard_core.trainer.contract import ScoredSample
from orchard_core.types.sample import SampleLabel, TrainingSample


class FakeFeed:
    """Honours `orchard_core.Feed`; `fail_at` raises before that step, as a killed run would end."""

    def __init__(
        self, *, steps: int, batch: int = 2, vocabulary: int = 32, seed: int = 0, fail_at: int | None = None
    ) -> None:
        self._steps = steps
        self._batch = batch
        self._vocabulary = vocabulary
        self._seed = seed
        self._fail_at = fail_at
        self.given: list[int] = []
        """Steps whose batch was taken, in order."""

    async def batches(self, *, from_step: int = 0) -> AsyncIterator[list[ScoredSample]]:
        """See Feed."""
        for step in range(from_step, self._steps):
            if step == self._fail_at:
                raise OrchardError(f"the feed was told to fail at step {step}")
            self.given.append(step)
            yield [self._sample(step, index) for index in range(self._batch)]

    def _sample(self, step: int, index: int) -> ScoredSample:
        draw = random.Random(f"{self._seed}/{step}/{index}")
        length = draw.randint(4, 12)
        mask = (0, *(draw.randint(0, 1) for _ in range(length - 2)), 1)
        return ScoredSample(
            sample=TrainingSample(
                token_ids=tuple(draw.randrange(self._vocabulary) for _ in range(length)),
                mask=mask,
                logprobs=tuple(-draw.random() if flag else 0.0 for flag in mask),
                label=SampleLabel.MAIN,
                calls=(0,),
            ),
            weight=draw.uniform(-1, 1),
            task_id=f"task-{step}-{index}",
        )
