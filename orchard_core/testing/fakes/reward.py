"""A reward that says what it was told to say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from orchard_core.reward.contract import Evidence, Grading
from orchard_core.types.reward import RewardResult

Judge = Callable[[Evidence, Grading], Awaitable[float]]
"""Gives the score, or raises a RewardError."""


class FakeReward:
    """Honours `orchard_core.Reward`; `judge` is a score or a function of evidence and grading."""

    def __init__(
        self, judge: float | Judge = 1.0, *, name: str = "fake", needs_own_sandbox: bool = False
    ) -> None:
        self._judge = judge
        self._name = name
        self._needs_own_sandbox = needs_own_sandbox
        self.evidence: list[Evidence] = []
        """Everything it was asked to score."""

    @property
    def name(self) -> str:
        """See Reward."""
        return self._name

    @property
    def version(self) -> str:
        """See Reward."""
        return "1"

    @property
    def needs_own_sandbox(self) -> bool:
        """See Reward."""
        return self._needs_own_sandbox

    async def score(self, evidence: Evidence, grading: Grading) -> RewardResult:
        """See Reward."""
        self.evidence.append(evidence)
        score = await self._judge(evidence, grading) if callable(self._judge) else self._judge
        return RewardResult(
            score=score,
            reason=f"judged to be {score:g}",
            same_sandbox=self._needs_own_sandbox,
            version=f"{self.name} {self.version}",
        )


def file_holds(path: str, content: bytes) -> Judge:
    """A judge: 1 when the artifact at `path` has exactly this content, else 0."""

    async def judge(evidence: Evidence, grading: Grading) -> float:
        artifact = evidence.artifacts.get(path)
        return float(artifact is not None and await evidence.blobs.read(artifact.sha256) == content)

    return judge
