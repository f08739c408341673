"""Nothing that a sandbox can make of its files leads a copy out, or keeps it for ever."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from orchard_core.errors import SandboxError
from orchard_core.sandbox.agent import agent_binary
from orchard_core.sandbox.agent_sandbox import AgentSandbox
from orchard_core.sandbox.contract import Sandbox
from orchard_core.sandbox.local.bubblewrap import find_bwrap
from orchard_core.sandbox.local.cloning import Cloning

_PATIENCE_S = 60.0
_NEST = """
import os
os.mkdir("nest")
os.chdir("nest")
for depth in range(3000):
    if depth % 1000 == 0:
        open("mark", "w").write(str(depth))
        os.link("mark", "again")
    os.mkdir("d" * 20)
    os.chdir("d" * 20)
"""
_UNNEST = """
import os
os.chdir("nest")
depth = 0
while os.path.isdir("d" * 20):
    if depth % 1000 == 0:
        assert open("again").read() == str(depth), depth
        assert os.stat("mark").st_nlink == 2
    os.chdir("d" * 20)
    depth += 1
print(depth)
"""


async def _fork(sandbox: AgentSandbox) -> Sandbox:
    async with asyncio.timeout(_PATIENCE_S):
        (child,) = await sandbox.fork(1)
    return child


async def test_a_nest_deeper_than_any_path_is_copied(sandbox: AgentSandbox) -> None:
    assert (await sandbox.exec(["python3", "-c", _NEST])).ok
    async with await _fork(sandbox) as child:
        done = await child.exec(["python3", "-c", _UNNEST])
        assert done.stdout == b"3000\n", done.text


async def test_links_are_copied_and_never_followed(sandbox: AgentSandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    made = "ln -s /etc/shadow shadow; ln -s loop loop; ln -s .. up; ln -s / root; ln -s $SECRET secret"
    await sandbox.exec(made, env={"SECRET": str(secret)})
    async with await _fork(sandbox) as child:
        for name, target in {"shadow": "/etc/shadow", "loop": "loop", "up": "..", "root": "/"}.items():
            assert (await child.stat(f"/workspace/{name}")).link == target
        assert not (await child.exec("cat shadow")).ok
        assert not (await child.exec("cat secret")).ok


async def test_nobody_is_waited_for_at_a_pipe_or_a_locked_file(sandbox: AgentSandbox) -> None:
    await sandbox.exec(
        "mkfifo pipe; : > locked; (echo x > pipe &); flock locked sleep 1000 > /dev/null 2>&1 &"
    )
    async with await _fork(sandbox) as child:
        assert {entry.name for entry in await child.list("/workspace")} == {"pipe", "locked"}


async def test_names_that_are_no_text_are_copied(sandbox: AgentSandbox) -> None:
    names = ["new\nline", os.fsdecode(b"\xff\xfe"), "-rf", "a,b:c\\d", "{}", "n" * 255]
    for name in names:
        await sandbox.write(f"/workspace/{name}", name.encode("utf-8", "surrogateescape"))
    async with await _fork(sandbox) as child:
        assert {entry.name for entry in await child.list("/workspace")} == set(names)
        assert await child.read_bytes("/workspace/new\nline") == b"new\nline"


@pytest.mark.parametrize("kind", ["file", "directory"])
async def test_what_becomes_a_link_while_it_is_copied_is_not_followed(tmp_path: Path, kind: str) -> None:
    """Nothing runs during a copy; should something, it gains nothing."""
    home = tmp_path / "home"
    source = home / "from"
    source.mkdir(parents=True)
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/file").write_text("of the host")
    target = tmp_path / "secret" if kind == "directory" else tmp_path / "secret/file"
    ended = asyncio.Event()
    swapping = asyncio.create_task(asyncio.to_thread(_swap, source, target, kind, ended))
    refused: list[str] = []
    try:
        for round_ in range(8):
            try:
                await Cloning(find_bwrap(), agent_binary(), home).run([(source, home / f"to{round_}")])
            except SandboxError as error:  # what vanishes before it is copied may end the copy, in order
                refused.append(str(error))
    finally:
        ended.set()
        await swapping
    assert [words for words in refused if "panic" in words] == []
    files = [path for path in home.rglob("*") if path.is_file() and not path.is_symlink()]
    assert [path for path in files if "host" in path.read_text()] == []


def _swap(source: Path, target: Path, kind: str, ended: asyncio.Event) -> None:
    """Again and again each of a hundred names is what it should be, and a link to the secret."""
    while not ended.is_set():
        for number in range(100):
            path, draft = source / str(number), source / "draft"
            if kind == "file":
                draft.write_text("own")
                draft.replace(path)
            elif not path.exists():
                path.mkdir()
            draft.symlink_to(target)
            if kind == "directory":
                path.rmdir()
            draft.replace(path)
            if kind == "directory":
                path.unlink()
                path.mkdir()
        for path in source.iterdir():
            if path.is_symlink():
                path.unlink()
