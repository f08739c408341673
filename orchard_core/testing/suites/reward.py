"""The contract suite of rewards."""

from __future__ import annotations

import asyncio
import dataclasses
import math
from collections.abc import AsyncIterator
from typing import ClassVar

import pytest
import pytest_asyncio

from orchard_core.errors import RecordCorrupt, RewardError
from orchard_core.reward.contract import Evidence, Reward
from orchard_core.sandbox.contract import Sandbox, SandboxProvider
from orchard_core.testing.fakes.blobs import FakeBlobs
from orchard_core.testing.fakes.grading import FakeGrading
from orchard_core.testing.suites.provided import ProvidedSuite
from orchard_core.types.reward import RewardResult
from orchard_core.types.sandbox import SandboxSpec


class RewardSuite(ProvidedSuite):
    """Subclasses give the fixtures `reward`, `solved` and `failed` (Evidence of a rollout that deserves the
    best score and of one that does not), and `make_provider` where the reward needs a real sandbox."""

    best: ClassVar[float] = 1.0
    """What `solved` scores."""
    judges_files: ClassVar[bool] = True
    """The score depends on the artifacts."""

    @pytest_asyncio.fixture
    async def own(self, provider: SandboxProvider, reward: Reward) -> AsyncIterator[Sandbox | None]:
        """The agent's own sandbox, for rewards that need it: override it to show a solved state."""
        if not reward.needs_own_sandbox:
            yield None
            return
        async with await provider.create(SandboxSpec()) as sandbox:
            yield sandbox

    @pytest.fixture
    def grading(self, provider: SandboxProvider, own: Sandbox | None) -> FakeGrading:
        """What the reward may use; it counts what is left open."""
        return FakeGrading(provider, own=own, deadline_s=60)

    async def test_it_is_what_the_contract_names(self, reward: Reward) -> None:
        """Regrades look a reward up by name and version: both are there and stay the same."""
        assert isinstance(reward, Reward)
        assert reward.name
        assert reward.version
        assert (reward.name, reward.version) == (reward.name, reward.version)

    async def test_solved_evidence_gets_the_best_score(
        self, reward: Reward, solved: Evidence, grading: FakeGrading
    ) -> None:
        """A correct solution that is not rewarded teaches the model to avoid it."""
        result = await reward.score(solved, grading)
        assert result.score == self.best

    async def test_failed_evidence_gets_less(
        self, reward: Reward, failed: Evidence, grading: FakeGrading
    ) -> None:
        """A reward that cannot fail measures nothing."""
        result = await reward.score(failed, grading)
        assert result.score is not None
        assert result.score < self.best

    async def test_a_score_is_a_finite_number_with_its_origin(
        self, reward: Reward, solved: Evidence, grading: FakeGrading
    ) -> None:
        """NaN spoils every mean, and a score without version cannot be told from a regrade."""
        result = await reward.score(solved, grading)
        assert isinstance(result, RewardResult)
        assert result.score is not None
        assert math.isfinite(result.score)
        assert all(math.isfinite(part) for part in result.breakdown.values())
        assert result.version
        assert RewardResult.model_validate_json(result.model_dump_json()) == result

    async def test_the_same_evidence_scores_the_same(
        self, reward: Reward, solved: Evidence, failed: Evidence, grading: FakeGrading
    ) -> None:
        """One object scores many rollouts: no state may pass from one to the next."""
        first = await reward.score(solved, grading)
        await reward.score(failed, grading)
        assert (await reward.score(solved, grading)).score == first.score

    async def test_rollouts_are_scored_side_by_side(
        self, reward: Reward, solved: Evidence, failed: Evidence, grading: FakeGrading
    ) -> None:
        """Verification runs in parallel: no shared paths, no shared state."""
        if reward.needs_own_sandbox:
            pytest.skip("it judges in the agent's own sandbox, one at a time")
        results = await asyncio.gather(*(reward.score(item, grading) for item in (solved, failed) * 2))
        scores = [result.score for result in results]
        assert scores == [scores[0], scores[1]] * 2
        assert scores[0] == self.best != scores[1]

    async def test_no_sandbox_is_left_open(
        self, reward: Reward, solved: Evidence, failed: Evidence, grading: FakeGrading
    ) -> None:
        """Enter `grading.fresh` with `async with`: a sandbox left open costs until its life span ends."""
        await reward.score(solved, grading)
        await reward.score(failed, grading)
        assert grading.open == 0

    async def test_the_agents_sandbox_is_not_touched_unless_asked_for(
        self, reward: Reward, solved: Evidence, provider: SandboxProvider
    ) -> None:
        """Regrades have no agent's sandbox: judge from artifacts, or say `needs_own_sandbox`."""
        grading = FakeGrading(provider, own=None)
        if not reward.needs_own_sandbox:
            assert (await reward.score(solved, grading)).score == self.best
            return
        with pytest.raises(RewardError):
            await reward.score(solved, grading)

    async def test_judging_in_the_agents_sandbox_is_marked(
        self, reward: Reward, solved: Evidence, grading: FakeGrading
    ) -> None:
        """An agent may have prepared its own sandbox: readers must see `same_sandbox`."""
        assert (await reward.score(solved, grading)).same_sandbox == reward.needs_own_sandbox

    async def test_missing_artifacts_are_never_a_success(
        self, reward: Reward, solved: Evidence, grading: FakeGrading
    ) -> None:
        """An agent that left nothing has not solved it: score it lower, or raise a RewardError."""
        if not self.judges_files or reward.needs_own_sandbox:
            pytest.skip("it does not judge artifacts")
        try:
            result = await reward.score(dataclasses.replace(solved, artifacts={}), grading)
        except RewardError:
            return
        assert result.score is None or result.score < self.best

    async def test_lost_artifacts_are_no_score(
        self, reward: Reward, solved: Evidence, grading: FakeGrading
    ) -> None:
        """A damaged store is no failure of the agent's: raise, never score 0."""
        if not solved.artifacts or not self.judges_files or reward.needs_own_sandbox:
            pytest.skip("it does not judge artifacts")
        with pytest.raises((RecordCorrupt, RewardError)):
            await reward.score(dataclasses.replace(solved, blobs=FakeBlobs()), grading)
        assert grading.open == 0
