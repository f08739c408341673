"""The script reward: a score that was earned, or the reason why there is none."""

from __future__ import annotations

import io
import tarfile
from collections.abc import AsyncIterator, Callable, Mapping

import pytest
import pytest_asyncio

from orchard_core import (
    Artifact,
    Evidence,
    ImageRef,
    Outcome,
    Reward,
    RewardMissing,
    RewardResult,
    Sandbox,
    SandboxProvider,
    SandboxSpec,
    ScriptReward,
    Task,
    Trajectory,
    VerifierFailed,
    VerifierScript,
    VerifierTimedOut,
    VerifyIn,
)
from orchard_core.reward.script import cut
from orchard_core.testing import FakeBlobs, FakeGrading, RewardSuite

COMPARE = """#!/bin/sh
if cmp -s /workspace/answer.txt /tests/expected.txt; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""
TestsOf = Callable[..., VerifierScript]


def evidence(files: Mapping[str, bytes] | None = None, *, tar: bytes | None = None) -> Evidence:
    """A rollout that left these files in /workspace."""
    blobs = FakeBlobs()
    artifact = blobs.tree("/workspace", tar if tar is not None else tar_of(files or {}))
    return evidence_with({"/workspace": artifact}, blobs)


def evidence_with(artifacts: Mapping[str, Artifact], blobs: FakeBlobs) -> Evidence:
    task = Task(
        id="seven", taskset="t", instruction="Write 7.", artifacts=tuple(artifacts), verifier_timeout_s=20
    )
    return Evidence(
        task=task, trajectory=Trajectory(), outcome=Outcome.COMPLETED, artifacts=artifacts, blobs=blobs
    )


def tar_of(files: Mapping[str, bytes], links: Mapping[str, str] | None = None) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for name, target in (links or {}).items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
    return buffer.getvalue()


class TestFresh(RewardSuite):
    @pytest.fixture
    def provider(self, provider: SandboxProvider) -> SandboxProvider:
        return provider

    @pytest.fixture
    def reward(self, tests_of: TestsOf) -> ScriptReward:
        return ScriptReward(tests_of(COMPARE), SandboxSpec())

    @pytest.fixture
    def solved(self) -> Evidence:
        return evidence({"answer.txt": b"7\n"})

    @pytest.fixture
    def failed(self) -> Evidence:
        return evidence({"answer.txt": b"8\n"})


class TestSameSandbox(RewardSuite):
    judges_files = False

    @pytest.fixture
    def provider(self, provider: SandboxProvider) -> SandboxProvider:
        return provider

    @pytest_asyncio.fixture
    async def own(self, provider: SandboxProvider, reward: Reward) -> AsyncIterator[Sandbox | None]:
        async with await provider.create(SandboxSpec()) as sandbox:
            await sandbox.write("/workspace/answer.txt", b"7\n")
            yield sandbox

    @pytest.fixture
    def reward(self, tests_of: TestsOf) -> ScriptReward:
        return ScriptReward(tests_of(COMPARE), SandboxSpec(), verify_in=VerifyIn.SAME_SANDBOX)

    @pytest.fixture
    def solved(self) -> Evidence:
        return evidence_with({}, FakeBlobs())

    @pytest.fixture
    def failed(self) -> Evidence:
        pytest.skip("what lies in the sandbox decides, not the evidence")


async def run(provider: SandboxProvider, script: VerifierScript, seen: Evidence) -> RewardResult:
    return await ScriptReward(script, SandboxSpec()).score(seen, FakeGrading(provider))


@pytest.mark.parametrize(
    ("written", "score", "parts"),
    [
        ("reward.txt", 0.25, {}),
        ("reward.json", 0.5, {"style": 0.1}),
        ("single.json", 0.75, {}),
        ("number.json", 1.0, {}),
    ],
)
async def test_a_reward_is_read_from_text_or_json(
    provider: SandboxProvider, tests_of: TestsOf, written: str, score: float, parts: Mapping[str, float]
) -> None:
    content = {
        "reward.txt": " 0.25 ",
        "reward.json": '{"reward": 0.5, "style": 0.1}',
        "single.json": '{"accuracy": 0.75}',
        "number.json": "1",
    }[written]
    file = "reward.txt" if written.endswith("txt") else "reward.json"
    script = tests_of(f"cat > /logs/verifier/{file} <<'END'\n{content}\nEND\n")
    result = await run(provider, script, evidence())
    assert (result.score, result.breakdown) == (score, parts)


@pytest.mark.parametrize(
    "content",
    [
        *("", "passed", "nan", "inf", "1e999", "true", "1.5", "-1", "1 0", "[1]", '{"a": 1, "b": 1}'),
        *("9" * 400, "9" * 5000, "9" * 70000, '{"reward": 1, "style": ' + "9" * 400 + "}", "[" * 60000),
    ],
    ids=lambda text: f"{text[:12]} of {len(text)}" if text else "empty",
)
@pytest.mark.parametrize("name", ["reward.txt", "reward.json"])
async def test_a_reward_that_cannot_be_believed_is_missing_not_zero(
    provider: SandboxProvider, tests_of: TestsOf, name: str, content: str
) -> None:
    script = tests_of(f"cp /tests/content /logs/verifier/{name}\n")
    (script.directory / "content").write_text(content)
    with pytest.raises(RewardMissing, match="reward"):
        await run(provider, script, evidence())


@pytest.mark.parametrize(("text", "score"), [("1", None), ("0.50", 0.5)])
async def test_two_reward_files_must_agree(
    provider: SandboxProvider, tests_of: TestsOf, text: str, score: float | None
) -> None:
    script = tests_of(
        f"echo {text} > /logs/verifier/reward.txt\n"
        """echo '{"reward": 0.5, "style": 1}' > /logs/verifier/reward.json\n"""
    )
    if score is None:
        with pytest.raises(RewardMissing, match=r"differ: 1 and 0\.5"):
            await run(provider, script, evidence())
    else:
        assert (await run(provider, script, evidence())).breakdown == {"style": 1.0}


async def test_a_file_in_place_of_the_tasks_directory_is_judged_as_nothing_left(
    provider: SandboxProvider, tests_of: TestsOf
) -> None:
    blobs = FakeBlobs()
    seen = evidence_with({"/workspace": blobs.file("/workspace", b"7")}, blobs)
    result = await run(provider, tests_of(COMPARE), seen)
    assert result.score == 0.0
    assert "/workspace was left out" in result.log


async def test_a_wider_range_can_be_allowed(provider: SandboxProvider, tests_of: TestsOf) -> None:
    script = tests_of("echo -3 > /logs/verifier/reward.txt\n", score_range=(-5.0, 5.0))
    assert (await run(provider, script, evidence())).score == -3.0


async def test_no_reward_file_is_missing_and_the_log_tells(
    provider: SandboxProvider, tests_of: TestsOf
) -> None:
    with pytest.raises(RewardMissing, match="exit code 4") as caught:
        await run(provider, tests_of("echo cannot find the compiler; exit 4\n"), evidence())
    assert "cannot find the compiler" in caught.value.hint


async def test_a_verifier_that_is_killed_has_failed(provider: SandboxProvider, tests_of: TestsOf) -> None:
    with pytest.raises(VerifierFailed, match="killed"):
        await run(provider, tests_of("kill -9 $$\n"), evidence())


async def test_a_verifier_that_cannot_start_has_failed(provider: SandboxProvider, tests_of: TestsOf) -> None:
    with pytest.raises(VerifierFailed):
        await run(provider, tests_of("#!/no/such/interpreter\n"), evidence())


async def test_a_sandbox_that_cannot_be_had_is_no_score(provider: SandboxProvider, tests_of: TestsOf) -> None:
    reward = ScriptReward(tests_of(COMPARE), SandboxSpec(image=ImageRef.parse("oci:none:1")))
    with pytest.raises(VerifierFailed):
        await reward.score(evidence(), FakeGrading(provider))


async def test_a_failing_exit_code_does_not_take_back_a_reward(
    provider: SandboxProvider, tests_of: TestsOf
) -> None:
    script = tests_of("echo 1 > /logs/verifier/reward.txt; exit 1\n")
    assert (await run(provider, script, evidence())).score == 1.0


async def test_the_verifiers_own_limit_is_the_one_that_is_told(
    provider: SandboxProvider, tests_of: TestsOf
) -> None:
    seen = evidence()
    slow = Evidence(
        task=seen.task.model_copy(update={"verifier_timeout_s": 0.4}),
        trajectory=seen.trajectory,
        outcome=seen.outcome,
        artifacts=seen.artifacts,
        blobs=seen.blobs,
    )
    with pytest.raises(VerifierTimedOut, match=r"limit of 0\.4 s") as caught:
        await run(provider, tests_of("echo began; sleep 60\n"), slow)
    assert caught.value.limit_s == 0.4
    assert "began" in caught.value.hint


async def test_the_deadline_of_grading_counts_too(provider: SandboxProvider, tests_of: TestsOf) -> None:
    reward = ScriptReward(tests_of("sleep 60\n"), SandboxSpec())
    with pytest.raises(VerifierTimedOut) as caught:
        await reward.score(evidence(), FakeGrading(provider, deadline_s=1.5))
    assert caught.value.limit_s <= 1.5


async def test_what_the_agent_left_at_the_verifiers_places_counts_for_nothing(
    provider: SandboxProvider, tests_of: TestsOf
) -> None:
    """Files at /tests and /logs can only come from the same sandbox, so it is tried there."""
    reward = ScriptReward(tests_of(COMPARE), SandboxSpec(), verify_in=VerifyIn.SAME_SANDBOX)
    forge = (
        "mkdir -p /tests /logs/verifier /elsewhere/verifier; echo 1 > /logs/verifier/reward.txt; "
        "printf '#!/bin/sh\\ntrue\\n' > /tests/test.sh; chmod 755 /tests/test.sh; echo {kind}"
    )
    linked = f"{forge}; rm -rf /logs /tests; ln -s /elsewhere /logs; ln -s /elsewhere /tests"
    for command in (forge, linked):
        async with await provider.create(SandboxSpec()) as own:
            assert (await own.exec(command)).ok
            result = await reward.score(evidence_with({}, FakeBlobs()), FakeGrading(provider, own=own))
            assert result.score == 0.0
            assert result.same_sandbox


@pytest.mark.parametrize(
    "links",
    [
        {"answer.txt": "/tests/expected.txt"},
        {"answer.txt": "../tests/expected.txt"},
        {"answer.txt": "/proc/self/root/tests/expected.txt"},
        {"all": "/", "answer.txt": "all/tests/expected.txt"},
        {"all": "..", "answer.txt": "all/tests/expected.txt"},
        {"u": "/usr", "answer.txt": "u/../tests/expected.txt"},
        {"answer.txt": "/usr/../tests/expected.txt"},
    ],
    ids=str,
)
async def test_no_link_leads_a_verifier_to_its_own_answers(
    provider: SandboxProvider, tests_of: TestsOf, links: Mapping[str, str]
) -> None:
    result = await run(provider, tests_of(COMPARE), evidence(tar=tar_of({}, links)))
    assert result.score == 0.0
    assert "was left out" in result.log


async def test_ordinary_links_stay(provider: SandboxProvider, tests_of: TestsOf) -> None:
    tar = tar_of({"real.txt": b"7\n"}, {"answer.txt": "real.txt", "python": "/usr/bin/python3"})
    script = tests_of(COMPARE + "readlink /workspace/python\n")
    result = await run(provider, script, evidence(tar=tar))
    assert result.score == 1.0
    assert "/usr/bin/python3" in result.log


async def test_a_pipe_among_the_artifacts_does_not_hang_the_verifier(
    provider: SandboxProvider, tests_of: TestsOf
) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        pipe = tarfile.TarInfo("answer.txt")
        pipe.type = tarfile.FIFOTYPE
        archive.addfile(pipe)
    assert (await run(provider, tests_of(COMPARE), evidence(tar=buffer.getvalue()))).score == 0.0


async def test_a_damaged_artifact_is_no_score(provider: SandboxProvider, tests_of: TestsOf) -> None:
    with pytest.raises(VerifierFailed, match="not a readable tar"):
        await run(provider, tests_of(COMPARE), evidence(tar=b"x" * 2000))


async def test_single_files_are_put_back_where_they_were(
    provider: SandboxProvider, tests_of: TestsOf
) -> None:
    blobs = FakeBlobs()
    seen = evidence_with({"/data/a/out.bin": blobs.file("/data/a/out.bin", b"\x00\xff")}, blobs)
    script = tests_of("od -An -tx1 /data/a/out.bin; echo 1 > /logs/verifier/reward.txt\n")
    assert "00 ff" in (await run(provider, script, seen)).log


async def test_artifacts_that_the_task_did_not_declare_are_not_placed(
    provider: SandboxProvider, tests_of: TestsOf
) -> None:
    blobs = FakeBlobs()
    held = evidence_with({"/workspace": blobs.tree("/workspace", tar_of({}))}, blobs)
    extra = {**held.artifacts, "/etc/profile": blobs.file("/etc/profile", b"exit 0\n")}
    seen = Evidence(
        task=held.task, trajectory=held.trajectory, outcome=held.outcome, artifacts=extra, blobs=blobs
    )
    script = tests_of("cat /etc/profile; echo 1 > /logs/verifier/reward.txt\n")
    assert "exit 0" not in (await run(provider, script, seen)).log


async def test_the_environment_of_the_tests_is_byte_equal(
    provider: SandboxProvider, tests_of: TestsOf
) -> None:
    value = "a 'b' \"c\" $(d)\n`e`"
    script = tests_of('printf "%s|" "$ODD"; echo 1 > /logs/verifier/reward.txt\n', env={"ODD": value})
    assert f"{value}|" in (await run(provider, script, evidence())).log


async def test_a_long_log_keeps_its_head_and_tail(provider: SandboxProvider, tests_of: TestsOf) -> None:
    script = tests_of("echo first; seq 1 20000; echo last; echo 1 > /logs/verifier/reward.txt\n")
    log = (await run(provider, script, evidence())).log
    assert log.strip().startswith("first")
    assert log.rstrip().endswith("last")
    assert "characters left out" in log
    assert len(log) < 20_000


def test_the_version_follows_the_tests(tests_of: TestsOf) -> None:
    versions = {
        ScriptReward(tests_of(COMPARE, digest=digest), SandboxSpec()).version for digest in ("a", "b", "")
    }
    assert len(versions) == 3


def test_cutting_leaves_short_text_alone() -> None:
    assert cut("short") == "short"
    assert cut("ab" * 50, 10) == "ababa\n[... 90 characters left out ...]\nbabab"
