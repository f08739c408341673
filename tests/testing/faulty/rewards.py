"""Rewards with one fault each."""

from __future__ import annotations

import pytest

from orchard_core import (
    Evidence,
    Grading,
    RecordCorrupt,
    RewardResult,
    SandboxSpec,
)
from orchard_core.testing import (
    ANSWER_PATH,
    FakeReward,
    RewardSuite,
    file_holds,
)
from tests.testing.faulty.making import evidence


class _Rewarded(RewardSuite):
    @pytest.fixture
    def solved(self) -> Evidence:
        return evidence(b"42")

    @pytest.fixture
    def failed(self) -> Evidence:
        return evidence(b"41")


class TestARewardThatCannotFail(_Rewarded):
    caught_by = "test_failed_evidence_gets_less"

    @pytest.fixture
    def reward(self) -> FakeReward:
        return FakeReward(1.0)


class TestAScoreThatIsNoNumber(_Rewarded):
    caught_by = "test_a_score_is_a_finite_number_with_its_origin"

    @pytest.fixture
    def reward(self) -> FakeReward:
        return FakeReward(float("nan"))


class TestLostArtifactsScoredZero(_Rewarded):
    caught_by = "test_lost_artifacts_are_no_score"

    @pytest.fixture
    def reward(self) -> FakeReward:
        async def judge(found: Evidence, grading: Grading) -> float:
            try:
                return await file_holds(ANSWER_PATH, b"42")(found, grading)
            except RecordCorrupt:
                return 0.0

        return FakeReward(judge)


class TestASandboxLeftOpen(_Rewarded):
    caught_by = "test_no_sandbox_is_left_open"

    @pytest.fixture
    def reward(self) -> FakeReward:
        async def judge(found: Evidence, grading: Grading) -> float:
            await grading.fresh(SandboxSpec()).__aenter__()
            return await file_holds(ANSWER_PATH, b"42")(found, grading)

        return FakeReward(judge)


class TestARewardThatRemembers(_Rewarded):
    caught_by = "test_the_same_evidence_scores_the_same"

    @pytest.fixture
    def reward(self) -> FakeReward:
        seen: list[Evidence] = []

        async def judge(found: Evidence, grading: Grading) -> float:
            seen.append(found)
            return 1.0 / len(seen)

        return FakeReward(judge)


class TestTheAgentsSandboxUnmarked(_Rewarded):
    caught_by = "test_judging_in_the_agents_sandbox_is_marked"

    @pytest.fixture
    def reward(self) -> FakeReward:
        class Reward(FakeReward):
            async def score(self, found: Evidence, grading: Grading) -> RewardResult:
                result = await super().score(found, grading)
                return result.model_copy(update={"same_sandbox": False})

        return Reward(needs_own_sandbox=True)
