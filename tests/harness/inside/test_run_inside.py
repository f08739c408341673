"""A program inside a real sandbox as a harness, whatever it does there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from orchard_core import (
    CommandNotFound,
    FileInput,
    HarnessCrashed,
    HarnessFlooded,
    HarnessHomeLost,
    HarnessHung,
    InsideLimits,
    InsideProgram,
    ProgramEnd,
    Sandbox,
    SandboxGone,
    SandboxUnavailable,
    open_sandbox,
    private_home,
    run_inside,
)
from orchard_core.testing.isolation import skip_without_isolation

PATIENCE_S = 60.0


@pytest.fixture(params=["local", "process"])
async def sandbox(request: pytest.FixtureRequest) -> AsyncIterator[Sandbox]:
    try:
        async with open_sandbox(request.param) as made:
            yield made
    except SandboxUnavailable as error:
        skip_without_isolation(error)


def sh(script: str, **fields: object) -> InsideProgram:
    return InsideProgram(argv=("sh", "-c", script), **fields)  # type: ignore[arg-type]


async def run(sandbox: Sandbox, script: str, **fields: object) -> tuple[ProgramEnd, list[bytes]]:
    lines: list[bytes] = []
    end = await run_inside(sandbox, sh(script, **fields), on_line=lines.append)
    return end, lines


async def test_lines_come_whole_and_in_order_and_the_last_needs_no_end(sandbox: Sandbox) -> None:
    end, lines = await run(sandbox, "echo one; printf 'tw'; sleep 0.1; printf 'o\\n\\nthree'; echo oops >&2")
    assert lines == [b"one", b"two", b"", b"three"]
    assert (end.ok, end.exit_code, end.stderr_tail) == (True, 0, b"oops\n")


async def test_lines_come_while_it_runs(sandbox: Sandbox) -> None:
    seen = asyncio.Event()
    work = asyncio.create_task(
        run_inside(
            sandbox,
            sh("echo up; while ! test -e go; do sleep 0.05; done"),
            on_line=lambda _: seen.set(),
        )
    )
    async with asyncio.timeout(PATIENCE_S):
        await seen.wait()
        assert not work.done()
        await sandbox.exec("touch go")
        assert (await work).ok


async def test_it_has_a_home_of_its_own_with_its_files_which_is_gone_afterwards(sandbox: Sandbox) -> None:
    files = (FileInput(path=".tool/config", content=b"x = 1", mode=0o600),)
    end, lines = await run(
        sandbox, "echo $HOME; cat ~/.tool/config; echo; stat -c %a ~/.tool/config", files=files
    )
    assert lines == [private_home(sandbox).encode(), b"x = 1", b"600"]
    assert end.ok
    assert not end.home_lost
    assert not (await sandbox.exec(["test", "-e", private_home(sandbox)])).ok


async def test_nothing_of_the_driver_s_environment_reaches_it(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIVER_SECRET", "hunter2")
    _, lines = await run(sandbox, "env", env={"OWN": "a b\n$(c)"})
    assert b"OWN=a b" in lines
    assert b"hunter2" not in b"\n".join(lines)


async def test_its_input_is_what_is_given_and_then_the_end(sandbox: Sandbox) -> None:
    _, lines = await run(sandbox, "cat")
    assert lines == []
    long = b"word " * 100_000
    _, lines = await run(sandbox, "wc -c", stdin=long)
    assert int(lines[0]) == len(long)


async def test_one_that_reads_no_input_is_no_fault(sandbox: Sandbox) -> None:
    end, _ = await run(sandbox, "exit 0", stdin=b"x" * 1_000_000)
    assert end.ok


async def test_one_that_crashes_is_told_with_its_last_words(sandbox: Sandbox) -> None:
    end, _ = await run(sandbox, "echo 'no such model' >&2; exit 3")
    assert isinstance(end.fault(), HarnessCrashed)
    assert "exit code 3: no such model" in str(end.fault())


async def test_one_that_a_signal_ends_is_told_with_the_signal(sandbox: Sandbox) -> None:
    end, _ = await run(sandbox, "kill -SEGV $$")
    assert "signal 11" in str(end.fault())


async def test_one_that_hangs_is_ended_at_its_own_limit(sandbox: Sandbox) -> None:
    end, lines = await run(sandbox, "echo begun; sleep 300", timeout_s=0.5)
    fault = end.fault()
    assert isinstance(fault, HarnessHung)
    assert (fault.limit_s, lines) == (0.5, [b"begun"])


async def test_one_that_floods_is_ended(sandbox: Sandbox) -> None:
    count = 0

    def counted(line: bytes) -> None:
        nonlocal count
        count += 1

    async with asyncio.timeout(PATIENCE_S):
        end = await run_inside(
            sandbox, sh("yes"), on_line=counted, limits=InsideLimits(output_bytes=1 << 20, tail_bytes=100)
        )
    assert isinstance(end.fault(), HarnessFlooded)
    assert count > 100_000
    assert end.stdout_tail in b"y\n" * 51


async def test_an_endless_line_takes_no_more_memory_than_allowed(sandbox: Sandbox) -> None:
    lines: list[bytes] = []
    await run_inside(
        sandbox,
        sh("head -c 300000 /dev/zero | tr '\\0' x; echo; echo next"),
        on_line=lines.append,
        limits=InsideLimits(line_bytes=1000),
    )
    assert lines == [b"x" * 1000, b"next"]


async def test_one_whose_home_is_deleted_from_inside_is_told_apart(sandbox: Sandbox) -> None:
    end, _ = await run(sandbox, 'rm -rf "$HOME"; cat "$HOME/.config"')
    assert end.home_lost
    assert isinstance(end.fault(), HarnessHomeLost)


async def test_one_that_forks_and_leaves_ends_with_its_leader(sandbox: Sandbox) -> None:
    async with asyncio.timeout(PATIENCE_S):
        end, lines = await run(sandbox, "for n in 1 2 3; do sleep 300 & done; echo left")
    assert (end.ok, lines) == (True, [b"left"])


@pytest.mark.parametrize("child", ["sleep 4713", "setsid sleep 4713"])
async def test_cancelling_ends_its_whole_tree(sandbox: Sandbox, child: str) -> None:
    seen: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    program = sh(f"{child} & echo $!; wait")
    work = asyncio.create_task(run_inside(sandbox, program, on_line=lambda line: seen.set_result(int(line))))
    async with asyncio.timeout(PATIENCE_S):
        pid = await seen
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        while (await sandbox.exec(f"kill -0 {pid}")).ok:
            await asyncio.sleep(0.02)


async def test_what_the_reader_raises_ends_it_and_passes(sandbox: Sandbox) -> None:
    def refuse(line: bytes) -> None:
        raise ValueError(line)

    with pytest.raises(ValueError, match="up"):
        await run_inside(sandbox, sh("echo up; exec sleep 4714"), on_line=refuse)
    assert "4714" not in (await sandbox.exec("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '")).text


async def test_a_program_that_is_not_there_is_told_as_such(sandbox: Sandbox) -> None:
    with pytest.raises(CommandNotFound):
        await run_inside(sandbox, InsideProgram(argv=("/opt/no-such-program",)))


async def test_a_sandbox_that_dies_under_it_passes_as_what_it_is(sandbox: Sandbox) -> None:
    up = asyncio.Event()
    work = asyncio.create_task(run_inside(sandbox, sh("echo up; sleep 300"), on_line=lambda _: up.set()))
    async with asyncio.timeout(PATIENCE_S):
        await up.wait()
        await sandbox.close()
        with pytest.raises(SandboxGone):
            await work
