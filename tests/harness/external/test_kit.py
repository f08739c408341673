"""The kit for harnesses in Python, against a real agent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from orchard_program import Command, Sandbox, SandboxRefused, Shell, mirror

from orchard_core.sandbox import contract

PATIENCE_S = 20.0


@pytest.fixture
async def inside(sandbox: contract.Sandbox) -> Sandbox:
    """The same sandbox, as a program reaches it."""
    given = await sandbox.endpoint()
    path = given.url.removeprefix("unix:")
    return Sandbox(url="http://localhost", socket_path=path, token=given.token, sandbox_id=given.sandbox_id)


def shown(shell: Shell, wanted: str) -> str:
    deadline = time.monotonic() + PATIENCE_S
    while wanted not in (screen := shell.screen()):
        assert time.monotonic() < deadline, screen
        assert not shell.ended, screen
        time.sleep(0.01)
    return screen


def typing(inside: Sandbox, tmp_path: Path) -> None:
    shell = Shell(inside, cwd=str(tmp_path), env={"PS1": "$ "})
    shell.type("mkdir -p sub && cd sub && x=7")
    shell.type("echo $x-in-${PWD##*/}")
    assert "echo $x-in-${PWD##*/}\n" in shown(shell, "7-in-sub")
    shell.type("read -r word; echo got-$word")
    shell.type("ping")
    shown(shell, "got-ping")
    # A signal reaches what bash has started, but is lost on a child that is not yet another program.
    shell.type("""sh -c 'echo be""gun; exec sleep 300'""")
    shown(shell, "begun")
    shell.type("C-c")
    shell.type("echo after-$?")
    shown(shell, "after-130")
    shell.forget(len(shell.screen()))
    shell.type("exec 1> file; echo hidden; echo seen >&9", shown="(something)")
    screen = shown(shell, "seen\n")
    assert screen.startswith("(something)\n")
    assert "hidden" not in screen
    shell.type("C-d")
    deadline = time.monotonic() + PATIENCE_S
    while not shell.ended:
        assert time.monotonic() < deadline
        shell.screen()
        time.sleep(0.01)


async def test_a_shell_keeps_its_state_and_obeys_control_keys(inside: Sandbox, tmp_path: Path) -> None:
    await asyncio.to_thread(typing, inside, tmp_path)


async def test_a_character_that_comes_in_two_pieces_is_whole(inside: Sandbox, tmp_path: Path) -> None:
    def talk() -> str:
        command = Command(inside, "printf 'x\\303'; read -r _; printf '\\244'", cwd=str(tmp_path))
        text = ""
        while not text:
            text += command.take()
        command.give("\n", end=True)
        while not command.ended:
            text += command.take()
        return text

    assert await asyncio.to_thread(talk) == "xä"


async def test_input_after_its_end_is_refused(inside: Sandbox, tmp_path: Path) -> None:
    def talk() -> str:
        command = Command(inside, "read -r _; sleep 300", cwd=str(tmp_path))
        command.give("\n", end=True)
        with pytest.raises(SandboxRefused) as refused:
            command.give("\n", end=True)
        command.kill()
        return refused.value.code

    assert await asyncio.to_thread(talk) == "stdin_closed"


@pytest.mark.parametrize(
    ("make", "path"),
    [
        (lambda root: (root / "data.bin").write_bytes(bytes(range(256)) * 9), "data.bin"),
        (
            lambda root: (root / "there").symlink_to(root / "real") or (root / "real").write_bytes(b"x"),
            "there",
        ),
    ],
    ids=["bytes", "link"],
)
async def test_a_file_is_mirrored_byte_by_byte(
    inside: Sandbox, tmp_path: Path, make: Callable[[Path], object], path: str
) -> None:
    make(tmp_path)
    local = await asyncio.to_thread(
        mirror, inside, str(tmp_path / path), tmp_path / "m", depth=2, largest=1 << 20
    )
    assert local == tmp_path / "m" / str(tmp_path / path)[1:]
    assert not local.is_symlink()
    assert local.read_bytes() == (tmp_path / path).read_bytes()


async def test_names_are_mirrored_to_a_depth_and_nothing_leaves_the_mirror(
    inside: Sandbox, tmp_path: Path
) -> None:
    (tmp_path / "d" / "e" / "f").mkdir(parents=True)
    (tmp_path / "d" / "e" / "f" / "deep").touch()
    (tmp_path / "d" / "link").symlink_to("/etc")
    (tmp_path / "d" / "big").write_bytes(b"x" * 5000)
    root = tmp_path / "m"
    local = await asyncio.to_thread(mirror, inside, str(tmp_path / "d"), root, depth=2, largest=1000)
    found = {str(path.relative_to(local)) for path in local.rglob("*")}
    assert {"e", "e/f", "big", "link"} <= found
    assert "e/f/deep" not in found
    assert not any(path.is_symlink() for path in root.rglob("*"))
    hole = await asyncio.to_thread(mirror, inside, str(tmp_path / "d" / "big"), root, depth=2, largest=1000)
    assert hole.stat().st_size == 5000
    assert not local.joinpath("e").exists(), "what was mirrored before is gone"
    escape = await asyncio.to_thread(mirror, inside, "/../../etc/hostname", root, depth=2, largest=1000)
    assert escape == root / "etc" / "hostname"


async def test_what_the_agent_refuses_is_told_with_its_code(inside: Sandbox) -> None:
    with pytest.raises(SandboxRefused) as raised:
        await asyncio.to_thread(inside.read, "/no/such/file")
    assert raised.value.code == "path_not_found"
    assert await asyncio.to_thread(inside.stat, "/no/such/file") is None
