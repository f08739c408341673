"""A task of three steps in fake sandboxes, and rollouts of the noisy oracle to be measured."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from orchard_core import Harness, Model, Rollout, Solution, SolutionStep, Task
from orchard_core.datasets.credit.branch.estimator import BranchEstimator
from orchard_core.datasets.credit.branch.options import BranchOptions
from orchard_core.datasets.credit.estimator import Item
from orchard_core.datasets.credit.rules import CreditRules
from orchard_core.datasets.rows import rollout_rows
from orchard_core.gateway.retry import RetryPolicy
from orchard_core.gateway.scripted import NoisyOracleConfig, NoisyOracleModel
from orchard_core.gateway.server import Gateway
from orchard_core.rollout.attempt import run_rollout
from orchard_core.rollout.branching.branch import Branch
from orchard_core.rollout.parts import RolloutParts
from orchard_core.testing import FakeHarness, FakeProvider, FakeReward, FakeTaskSet
from orchard_core.testing.fakes.reward import file_holds

ANSWER = "/workspace/answer.txt"
STEPS = ("printf one > answer.txt", "cat answer.txt", "printf two >> answer.txt")
"""The second one only looks: leaving it out does no harm."""
RATE = 0.6


def three_steps(*, look: str = STEPS[1]) -> FakeTaskSet:
    task = Task(
        id="steps", taskset="fake", instruction="Write onetwo into answer.txt.", artifacts=(ANSWER,),
        agent_timeout_s=60, verifier_timeout_s=30, digest="steps-1",
    )  # fmt: skip
    commands = (STEPS[0], look, STEPS[2])
    solution = Solution(steps=tuple(SolutionStep(command=command) for command in commands))
    reward = FakeReward(file_holds(ANSWER, b"onetwo"))
    return FakeTaskSet([task], rewards={"steps": reward}, solutions={"steps": solution})


@dataclass(slots=True, kw_only=True)
class Bench:
    """Parts, and where credits are kept."""

    parts: RolloutParts
    """Of the recorded rollouts, and of their continuations."""
    directory: Path
    """Of the credits."""
    ran: list[Branch] = field(default_factory=list)
    """Continuations that were really run, in the order they ended."""

    async def unresolved(self, *, answers: int = 3, within: int = 200) -> Rollout:
        """The first one that does not pass and has so many answers."""
        for seed in range(within):
            rollout = await self.rollout(seed)
            if rollout.score == 0.0 and len(rollout.trajectory.calls) >= answers:
                return rollout
        raise AssertionError("none of these seeds gives one")

    async def rollout(self, seed: int) -> Rollout:
        return await run_rollout(next(iter(self.parts.taskset.tasks())), self.parts, seed=seed)

    def item(self, rollout: Rollout) -> Item:
        return Item(
            row=rollout_rows(rollout)[0], run=self.directory, rollout=rollout, directory=self.directory
        )

    def estimator(
        self,
        *,
        rules: CreditRules | None = None,
        on_branch: Callable[[Branch], None] = lambda _branch: None,
        concurrency: int = 4,
        **options: object,
    ) -> BranchEstimator:
        async def open_parts(_stack: AsyncExitStack, _root: Path) -> RolloutParts:
            return self.parts

        def done(branch: Branch) -> None:
            self.ran.append(branch)
            on_branch(branch)

        return BranchEstimator(
            BranchOptions.model_validate(options), rules or CreditRules(), open_parts=open_parts,
            concurrency=concurrency, on_branch=done,
        )  # fmt: skip

    def with_parts(self, **changes: object) -> Bench:
        return replace(self, parts=replace(self.parts, **changes), ran=[])  # type: ignore[arg-type]


@asynccontextmanager
async def bench(
    directory: Path,
    *,
    taskset: FakeTaskSet | None = None,
    model: Model | None = None,
    harness: Harness | None = None,
) -> AsyncIterator[Bench]:
    """With a gateway that listens and a fake provider."""
    provider = FakeProvider()
    async with Gateway(retry=RetryPolicy(attempts=1)) as gateway:
        parts = RolloutParts(
            taskset=taskset or three_steps(),
            harness=harness or FakeHarness(),
            model=model or NoisyOracleModel(NoisyOracleConfig(rate=RATE)),
            provider=provider,
            gateway=gateway,
        )
        yield Bench(parts=parts, directory=directory)
    await provider.close()


def turns_of(branches: Sequence[Branch]) -> list[tuple[int, int]]:
    return sorted((branch.turn, branch.number) for branch in branches)
