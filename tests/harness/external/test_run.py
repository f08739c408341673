"""The contract of programs in any language: what they get, what they give, and how they fail."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from orchard_core.errors import (
    AgentRefused,
    ConfigError,
    HarnessCrashed,
    HarnessError,
    SandboxGone,
    SandboxUnavailable,
)
from orchard_core.harness.external.command import CommandConfig, CommandHarness
from orchard_core.plugins.lookup import load_harness, load_provider
from orchard_core.sandbox.agent import AgentClient
from orchard_core.sandbox.contract import Sandbox
from orchard_core.testing import skip_without_isolation
from orchard_core.types.harness import StopReason, ToolUse
from orchard_core.types.sandbox import AgentEndpoint

from .conftest import Play

DONE = """printf '{"stop": "submitted", "answer": "42", "turns": 2}' > "$ORCHARD_RESULT" """
CALL = """curl -sS --unix-socket "$ORCHARD_SANDBOX_SOCKET" -H "X-Orchard-Sandbox: $ORCHARD_SANDBOX_ID" \\
  -H "Authorization: Bearer $ORCHARD_SANDBOX_TOKEN" """
PATIENCE_S = 90.0


async def test_a_result_and_the_files_to_keep_come_back(play: Play) -> None:
    played = await play(f'mkdir "$ORCHARD_ARTIFACTS/logs"; echo hi > "$ORCHARD_ARTIFACTS/logs/a.txt"; {DONE}')
    assert (played.result.stop, played.result.answer, played.result.turns) == (StopReason.SUBMITTED, "42", 2)
    assert played.result.artifacts == {"logs/a.txt": b"hi\n"}


async def test_the_task_is_in_its_files(play: Play, sandbox: Sandbox) -> None:
    played = await play(
        'cp "$ORCHARD_TASK" "$ORCHARD_ARTIFACTS/task"; '
        f'cp "$ORCHARD_INSTRUCTION_FILE" "$ORCHARD_ARTIFACTS/text"; {DONE}',
        options={"depth": 3},
    )
    task = json.loads(played.result.artifacts["task"])
    assert played.result.artifacts["text"] == b"Say 'hello'\nin two lines."
    assert task["instruction"] == "Say 'hello'\nin two lines."
    assert task["workdir"] == sandbox.spec.workdir
    assert (task["limits"]["turns"], task["options"]) == (3, {"depth": 3})


async def test_nothing_of_the_drivers_environment_is_seen(play: Play) -> None:
    os.environ["OPENAI_API_KEY"] = "sk-vendor"
    try:
        played = await play(f'env > "$ORCHARD_ARTIFACTS/env"; {DONE}', env={"EXTRA": "1"})
    finally:
        del os.environ["OPENAI_API_KEY"]
    names = {line.partition("=")[0] for line in played.result.artifacts["env"].decode().splitlines()}
    assert "OPENAI_API_KEY" not in names
    ours = {name for name in names if name.startswith("ORCHARD_")}
    assert names - ours <= {
        *("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH"),
        *("HOME", "TMPDIR", "NO_PROXY", "EXTRA", "PWD", "OLDPWD", "SHLVL", "_"),
    }


async def test_home_and_directory_are_private_and_removed(play: Play) -> None:
    script = 'cd "$ORCHARD_ARTIFACTS"; echo "$HOME $OLDPWD $TMPDIR" > places; stat -c %a "$HOME/.." >> places'
    played = await asyncio.gather(play(f"{script}; {DONE}"), play(f"{script}; rm -rf $HOME; {DONE}"))
    places = [one.result.artifacts["places"].decode().split() for one in played]
    assert {place[-1] for place in places} == {"700"}
    assert len({path for place in places for path in place[:-1]}) == 6
    assert not any(Path(path).exists() for place in places for path in place[:-1])


async def test_keys_are_taken_out_of_what_is_kept(play: Play) -> None:
    played = await play(
        'env > "$ORCHARD_ARTIFACTS/env"; jq -n --arg k "$ORCHARD_MODEL_KEY" '
        '\'{stop: "answered", answer: ("the key is " + $k)}\' > "$ORCHARD_RESULT"'
    )
    assert played.result.answer == "the key is [redacted]"
    assert played.session.endpoint.api_key.encode() not in played.result.artifacts["env"]
    assert b"ORCHARD_SANDBOX_TOKEN=[redacted]" in played.result.artifacts["env"]


@pytest.mark.parametrize(
    ("script", "kind", "told"),
    [
        (
            "echo went wrong >&2; exit 3",
            HarnessCrashed,
            "harness.sh ended with exit code 3; its last words: w",
        ),
        ("kill -SEGV $$", HarnessCrashed, "exit code 139"),
        ("echo bye", HarnessCrashed, "left no result (No such file or directory); its last words: bye"),
        (f"{DONE}; exit 1", HarnessCrashed, "exit code 1, without a word"),
        ('echo {} > "$ORCHARD_RESULT"', HarnessError, "stop: Field required"),
        ('echo \'{"stop": "tired"}\' > "$ORCHARD_RESULT"', HarnessError, "stop: Input should be"),
        ('echo half { > "$ORCHARD_RESULT"', HarnessError, "the file: Invalid JSON"),
        ('ln -s /etc/passwd "$ORCHARD_RESULT"', HarnessCrashed, "left no result (Too many levels"),
        ('mkfifo "$ORCHARD_RESULT"', HarnessCrashed, "left no result (no regular file)"),
        ('truncate -s 1G "$ORCHARD_RESULT"', HarnessCrashed, "left no result (1073741824 bytes"),
    ],
    ids=["exit", "signal", "no result", "failed after", "empty", "unknown", "torn", "link", "pipe", "huge"],
)
async def test_a_failure_is_named(play: Play, script: str, kind: type[HarnessError], told: str) -> None:
    with pytest.raises(kind) as raised:
        await play(script)
    assert told in raised.value.message


async def test_files_that_are_none_and_files_too_many_are_not_kept(play: Play) -> None:
    played = await play(
        'cd "$ORCHARD_ARTIFACTS"; ln -s /etc/passwd link; mkfifo pipe; truncate -s 70M big; '
        f"echo x > small; {DONE}"
    )
    assert played.result.artifacts == {"small": b"x\n"}


async def test_the_sandbox_answers_over_plain_http(play: Play) -> None:
    played = await play(f'{CALL} "$ORCHARD_SANDBOX_URL/v1/health" > "$ORCHARD_ARTIFACTS/health"; {DONE}')
    assert json.loads(played.result.artifacts["health"])["sandbox"]


async def test_its_token_ends_with_it(play: Play, sandbox: Sandbox) -> None:
    played = await play(
        f"{CALL} $ORCHARD_SANDBOX_URL/v1/health > /dev/null; "
        f'printf %s "$ORCHARD_SANDBOX_TOKEN" | rev > "$ORCHARD_ARTIFACTS/token"; {DONE}'
    )
    own = await sandbox.endpoint()
    token = played.result.artifacts["token"].decode()[::-1]
    async with AgentClient(AgentEndpoint(url=own.url, token=token, sandbox_id=own.sandbox_id)) as late:
        with pytest.raises(AgentRefused):
            await late.health()


async def test_cancelling_ends_the_program_and_its_commands_inside(
    play: Play, sandbox: Sandbox, tmp_path: Path
) -> None:
    script = f"""
spec='{{"id": "left-behind", "script": "echo $$ > {tmp_path}/inside; sleep 300"}}'
{{ printf '\\000\\000\\000'; printf "\\\\$(printf %03o ${{#spec}})"; printf %s "$spec"; }} |
  {CALL} --data-binary @- "$ORCHARD_SANDBOX_URL/v1/exec" > /dev/null
echo $$ > {tmp_path}/outside; sleep 300
"""
    running = asyncio.create_task(play(script))
    files = [tmp_path / "inside", tmp_path / "outside"]
    async with asyncio.timeout(PATIENCE_S):
        while not all(file.exists() and file.read_text().strip() for file in files):
            assert not running.done(), running.result()
            await asyncio.sleep(0.02)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        while any(alive(file) for file in files):
            await asyncio.sleep(0.02)
    assert await sandbox.alive()


async def test_a_sandbox_that_dies_under_it_is_to_blame(play: Play, sandbox: Sandbox, tmp_path: Path) -> None:
    running = asyncio.create_task(
        play(f"touch {tmp_path}/up; while [ -e {tmp_path}/up ]; do sleep 0.02; done; exit 7")
    )
    async with asyncio.timeout(PATIENCE_S):
        while not (tmp_path / "up").exists():
            await asyncio.sleep(0.02)
        await sandbox.close()
        (tmp_path / "up").unlink()
        with pytest.raises(SandboxGone):
            await running


async def test_killing_an_orchard_run_leaves_no_program(tmp_path: Path) -> None:
    try:
        await load_provider("local").capabilities()
    except SandboxUnavailable as error:
        skip_without_isolation(error)
    script = tmp_path / "harness.sh"
    script.write_text(f"#!/bin/sh\n(setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 300' &)\nsleep 300\n")
    script.chmod(0o755)
    words = f"run workbench:1 --harness command:{script} --model oracle --out {tmp_path}/run"
    driver = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "orchard_core.cli.main", *words.split()), start_new_session=True
    )
    async with asyncio.timeout(PATIENCE_S):
        while not (tmp_path / "pid").exists():
            assert driver.returncode is None
            await asyncio.sleep(0.05)
        driver.send_signal(signal.SIGKILL)
        await driver.wait()
        while alive(tmp_path / "pid"):
            await asyncio.sleep(0.02)


def test_its_version_tells_one_program_from_another(harness_of: Callable[..., CommandHarness]) -> None:
    first, second = harness_of("echo 1").version, harness_of("echo 2").version
    assert first != second
    assert harness_of("echo 2").version == second


async def test_a_file_among_its_arguments_is_found_and_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.py").write_text("first")
    harness = CommandHarness(CommandConfig(program="sh run.py --fast"))
    assert (await harness.program()).argv[1:] == (str(tmp_path / "run.py"), "--fast")
    version = harness.version
    (tmp_path / "run.py").write_text("second")
    assert version.startswith("sh run.py --fast ")
    assert harness.version != version


def test_its_options_say_what_it_can_do(tmp_path: Path) -> None:
    harness = load_harness("command:/bin/sh -c true", tools="none", turn_limit=False)
    assert (harness.capabilities.tools, harness.capabilities.turn_limit) == (ToolUse.NONE, False)
    with pytest.raises(ConfigError, match="there is no program"):
        CommandHarness(CommandConfig(program=str(tmp_path / "missing")))


def alive(pid_file: Path) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)
        return True
    return False
