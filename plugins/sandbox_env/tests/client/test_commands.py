"""Commands through the SDK, by both of its faces."""

from __future__ import annotations

import asyncio
import threading

import pytest
from orchard_env import AsyncSandboxInstance, JobResult, SandboxClient, SandboxInstance

from orchard_core import ExecForgotten, SandboxGone


def test_a_command_that_works_is_a_result(sandbox: SandboxInstance) -> None:
    result = sandbox.exec("echo out; echo err >&2")
    assert isinstance(result, JobResult)
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 0)
    assert result.succeeded
    assert result.is_complete
    assert not result.failed
    assert result.sandbox_id == sandbox.sandbox_id


def test_a_command_that_fails_is_a_result_too(sandbox: SandboxInstance) -> None:
    result = sandbox.exec("exit 3")
    assert (result.status, result.exit_code, result.error) == ("failed", 3, None)


def test_argv_stays_argv(sandbox: SandboxInstance) -> None:
    assert sandbox.exec(["printf", "%s|", "a b", "$HOME"]).stdout == "a b|$HOME|"


def test_environment_and_directory_are_those_asked_for(sandbox: SandboxInstance) -> None:
    result = sandbox.exec('printf "%s:%s" "$PWD" "$WORD"', cwd="/tmp", env={"WORD": "it's $(new)\n"})
    assert result.stdout == "/tmp:it's $(new)\n"


def test_a_time_out_says_so(sandbox: SandboxInstance) -> None:
    result = sandbox.exec("echo begun; sleep 60", timeout=1)
    assert (result.status, result.exit_code, result.stdout) == ("failed", 124, "begun\n")
    assert result.error
    assert sandbox.exec("exit 124").error is None


def test_a_job_can_be_left_and_asked_for(sandbox: SandboxInstance) -> None:
    job = sandbox.exec("sleep 0.2; echo late", wait=False)
    assert not job.is_complete
    while not (now := sandbox.get_job(job.job_id)).is_complete:
        pass
    assert now.stdout == "late\n"


def test_an_unknown_job_is_a_typed_error(sandbox: SandboxInstance) -> None:
    with pytest.raises((ExecForgotten, SandboxGone)):
        sandbox.get_job("no-such-job")


def test_a_patch_is_applied_or_its_failure_told(sandbox: SandboxInstance) -> None:
    sandbox.upload_content("one\n", "/workspace/patched.txt")
    patch = "--- a/patched.txt\n+++ b/patched.txt\n@@ -1 +1 @@\n-one\n+two\n"
    assert sandbox.apply_patch(patch)["success"]
    assert sandbox.download_content("/workspace/patched.txt") == b"two\n"
    assert not sandbox.apply_patch(patch)["success"]


async def test_the_asynchronous_face_runs_many_at_once(asandbox: AsyncSandboxInstance) -> None:
    results = await asyncio.gather(*(asandbox.exec(f"echo {n}") for n in range(20)))
    assert [result.stdout for result in results] == [f"{n}\n" for n in range(20)]


async def test_the_synchronous_face_works_inside_a_running_loop(sandbox: SandboxInstance) -> None:
    assert sandbox.exec("echo inside").stdout == "inside\n"


def test_the_synchronous_face_works_in_threads(sandbox: SandboxInstance) -> None:
    said: dict[int, str] = {}

    def work(number: int) -> None:
        said[number] = sandbox.exec(f"echo {number}").stdout

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == {number: f"{number}\n" for number in range(8)}


def test_the_service_tells_how_it_is(client: SandboxClient) -> None:
    assert client.health()["status"] in ("ok", "healthy")
