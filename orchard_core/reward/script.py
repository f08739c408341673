"""The default reward: a task's own test script, run where the agent cannot reach it.

Order matters. The artifacts are written first, then whatever they left at the verifier's places is removed,
then the tests are uploaded and run; so nothing the agent made can pass for a test or for a reward file.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from orchard_core.errors import (
    FileError,
    FileMissing,
    RewardMissing,
    SandboxError,
    VerifierFailed,
    VerifierTimedOut,
)
from orchard_core.reward.artifacts import place
from orchard_core.reward.contract import Evidence, Grading
from orchard_core.sandbox.contract import Sandbox
from orchard_core.types.reward import RewardResult
from orchard_core.types.sandbox import ExecResult, SandboxSpec
from orchard_core.types.task import VerifyIn

TESTS = "/tests"
"""Where a task's tests lie inside while they run."""
LOGS = "/logs/verifier"
"""Where a test script writes its reward file, after the Harbor convention."""
LOG_LIMIT = 16_000
"""Characters of a verifier's output that are kept, half of them from each end."""
REWARD_FILE_LIMIT = 64 << 10
"""Bytes a reward file may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifierScript:
    """A task's test script and how to run it."""

    directory: Path
    """Host directory that is uploaded to /tests."""
    script: str = "test.sh"
    """The script to run, relative to `directory`; by its shebang, or by /bin/sh without one."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to the environment of the script alone."""
    user: str | None = None
    """Whom it runs as; None: the sandbox's user."""
    digest: str = ""
    """Content hash of the tests, so that a change of them changes the reward's version."""
    score_range: tuple[float, float] = (0.0, 1.0)
    """Smallest and largest score that is believed."""


class ScriptReward:
    """Runs a test script on what the agent left and reads its reward file."""

    name = "script"

    def __init__(self, script: VerifierScript, spec: SandboxSpec, *, verify_in: VerifyIn = VerifyIn.FRESH):
        self._script = script
        self._spec = spec
        self._verify_in = verify_in

    @property
    def version(self) -> str:
        """`1`, and the hash of the tests when it is known."""
        return f"1+{self._script.digest[:12]}" if self._script.digest else "1"

    @property
    def needs_own_sandbox(self) -> bool:
        """The tests look at more than the declared artifacts."""
        return self._verify_in is VerifyIn.SAME_SANDBOX

    async def score(self, evidence: Evidence, grading: Grading) -> RewardResult:
        """Score it. Raises VerifierFailed, VerifierTimedOut, RewardMissing."""
        try:
            if not self.needs_own_sandbox:
                return await self._score_fresh(evidence, grading)
            if grading.own is None:
                raise VerifierFailed(
                    f"{evidence.task.id} is judged in the agent's own sandbox, which is gone",
                    hint="run the task again; it cannot be graded from artifacts",
                )
            return await self._judge(evidence, grading, grading.own, notes=[])
        except SandboxError as error:
            raise VerifierFailed(
                f"the verifier of {evidence.task.id} could not run: {error.message}",
                hint=error.hint or "the sandbox failed, not the agent: grade the rollout again",
            ) from error

    async def _score_fresh(self, evidence: Evidence, grading: Grading) -> RewardResult:
        started = time.monotonic()
        async with grading.fresh(self._spec) as sandbox:
            declared = [item for path, item in evidence.artifacts.items() if path in evidence.task.artifacts]
            notes = await place(sandbox, declared, evidence.blobs)
            return await self._judge(evidence, grading, sandbox, notes, used_s=time.monotonic() - started)

    async def _judge(
        self, evidence: Evidence, grading: Grading, sandbox: Sandbox, notes: list[str], used_s: float = 0.0
    ) -> RewardResult:
        task = evidence.task
        await self._prepare(sandbox)
        limit_s = min(task.verifier_timeout_s, max(grading.deadline_s - used_s, 0.1))
        result = await sandbox.exec(
            await self._command(sandbox),
            cwd=task.workdir,
            env=self._script.env,
            timeout=limit_s,
            user=self._script.user,
        )
        log = cut("\n".join([*notes, result.text]))
        if result.timed_out:
            raise VerifierTimedOut(
                f"the verifier of {task.id} ran past its limit of {limit_s:g} s",
                limit_s=limit_s,
                hint=f"raise the task's verifier time-out; its output ended with: {log[-300:]!r}",
            )
        score, parts = await self._reward(sandbox, task.id, result, log)
        return RewardResult(
            score=score,
            breakdown=parts,
            reason=f"the verifier exited with {result.exit_code} and wrote {score:g}",
            same_sandbox=self.needs_own_sandbox,
            log=log,
            version=f"{self.name} {self.version}",
        )

    async def _prepare(self, sandbox: Sandbox) -> None:
        """Make the verifier's own places new, whatever an agent or an artifact left there."""
        for path in ("/logs", TESTS):
            try:
                linked = (await sandbox.stat(path)).kind == "symlink"
            except FileMissing:
                continue
            if linked or path == TESTS:
                await sandbox.remove(path)
        await sandbox.remove(LOGS)
        await sandbox.mkdir(LOGS)
        if self._script.user is not None:  # the tests' user must be able to write its reward
            await sandbox.exec(["chmod", "0777", LOGS])
        await sandbox.upload(self._script.directory, TESTS)

    async def _command(self, sandbox: Sandbox) -> list[str]:
        """Write the entry script executable and with LF line ends; give the argv that runs it."""
        path = f"{TESTS}/{self._script.script}"
        text = (self._script.directory / self._script.script).read_bytes().replace(b"\r\n", b"\n")
        await sandbox.write(path, text, mode=0o755)
        return [path] if text.startswith(b"#!") else ["/bin/sh", path]

    async def _reward(
        self, sandbox: Sandbox, task_id: str, result: ExecResult, log: str
    ) -> tuple[float, dict[str, float]]:
        ended = f"the verifier of {task_id} ended with exit code {result.exit_code}"
        tail = f"its output ended with: {log[-500:]!r}"
        if result.exit_code >= 128:  # a reward that lies there may be that of whoever killed it
            raise VerifierFailed(f"{ended} (killed, or broken)", hint=tail)
        found = {}
        for name, parse in (("reward.txt", parse_text), ("reward.json", parse_json)):
            try:
                data = await sandbox.read_bytes(f"{LOGS}/{name}", limit=REWARD_FILE_LIMIT)
            except FileMissing:
                continue
            except FileError as error:
                raise RewardMissing(f"{name} of {task_id} cannot be read: {error.message}") from error
            found[name] = self._believe(*parse(data, f"{name} of {task_id}"), name, task_id)
        if not found:
            raise RewardMissing(f"{ended} and wrote neither reward.txt nor reward.json in {LOGS}", hint=tail)
        if len({score for score, _ in found.values()}) > 1:  # one of them may be the work of code under test
            scores = " and ".join(f"{score:g}" for score, _ in found.values())
            raise RewardMissing(
                f"reward.txt and reward.json of {task_id} differ: {scores}",
                hint="a test script writes one of them; see whether the agent's code wrote the other",
            )
        return list(found.values())[-1]  # that of reward.json, which may have parts

    def _believe(
        self, score: float, parts: dict[str, float], name: str, task_id: str
    ) -> tuple[float, dict[str, float]]:
        low, high = self._script.score_range
        if not low <= score <= high:
            raise RewardMissing(
                f"{name} of {task_id} says {score:g}, outside {low:g} to {high:g}",
                hint="mend the test script, or set reward_range in the task's [orchard] table",
            )
        return score, parts


def parse_text(data: bytes, where: str) -> tuple[float, dict[str, float]]:
    """Read `reward.txt`: one finite number. Raises RewardMissing for anything else."""
    try:
        return _number(data.decode("utf-8-sig").strip()), {}
    except (ValueError, UnicodeDecodeError):
        raise RewardMissing(
            f"{where} holds {data[:80]!r}, not a number", hint="a test script writes 0, 1 or a number between"
        ) from None


def parse_json(data: bytes, where: str) -> tuple[float, dict[str, float]]:
    """Read `reward.json`: a number, or an object with `reward` (or one key alone); the rest is the
    breakdown. Raises RewardMissing for anything else."""
    try:
        value = json.loads(data)
        if not isinstance(value, dict):
            return _number(value), {}
        parts = {str(key): _number(part) for key, part in value.items()}
        key = "reward" if "reward" in parts else next(iter(parts)) if len(parts) == 1 else ""
        return parts.pop(key), parts
    except (ValueError, TypeError, KeyError, RecursionError):
        raise RewardMissing(
            f"{where} holds {data[:80]!r}, not a reward", hint='write {"reward": 1.0} and any named parts'
        ) from None


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError(value)
    try:
        number = float(value)
    except OverflowError:  # a whole number of hundreds of digits
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(value)
    return number


def cut(text: str, limit: int = LOG_LIMIT) -> str:
    """`text`, or its head and tail with a line that tells how much lies between them."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"
