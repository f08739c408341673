"""Whose commands and whose files: an agent with root rights acts as the sandbox's user."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from orchard_core.errors import FileDenied, UserUnknown
from orchard_core.sandbox.agent import AgentClient

Launch = Callable[..., Awaitable[AgentClient]]
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
USER = "12345:54321"


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory that any user may reach and write to."""
    path = Path(tempfile.mkdtemp(dir="/tmp"))
    path.chmod(0o777)
    yield path
    shutil.rmtree(path)


def owner(path: Path) -> tuple[int, int]:
    info = path.lstat()
    return info.st_uid, info.st_gid


async def test_commands_run_as_the_user_asked_for(agent: AgentClient) -> None:
    result = await agent.exec("id -u; id -g; id -G", user=USER)
    assert result.stdout.split() == [b"12345", b"54321", b"54321"]
    assert (await agent.exec("id -un", user="nobody")).stdout == b"nobody\n"
    for user in ("no-such-user", "nobody:no-such-group"):
        with pytest.raises(UserUnknown):
            await agent.exec("id", user=user)


async def test_the_default_user_runs_commands_and_owns_files(launch: Launch, shared: Path) -> None:
    client = await launch("--drop-to", USER)
    assert (await client.exec("id -u")).stdout == b"12345\n"
    await client.write(str(shared / "new/file"), b"x")
    await client.mkdir(str(shared / "made"))
    (shared / "source").mkdir()
    (shared / "source/file").write_text("x")
    await client.upload(shared / "source", str(shared / "tree"))
    for name in ("new", "new/file", "made", "tree", "tree/file"):
        assert owner(shared / name) == (12345, 54321), name


async def test_files_are_kept_from_a_user_who_may_not_touch_them(launch: Launch, shared: Path) -> None:
    secret = shared / "secret"
    secret.write_text("root only")
    secret.chmod(0o600)
    (shared / "closed").mkdir(mode=0o700)
    (shared / "planted").symlink_to(secret)
    client = await launch("--drop-to", USER)
    for path in ("secret", "planted"):
        with pytest.raises(FileDenied):
            await client.read_bytes(str(shared / path))
        with pytest.raises(FileDenied):
            await client.write(str(shared / path), b"overwritten")
    with pytest.raises(FileDenied):
        await client.list(str(shared / "closed"))
    with pytest.raises(FileDenied):
        await client.write("/etc/orchard-test", b"x")
    assert secret.read_text() == "root only"
    await client.write(str(secret), b"by root", user="root")
    assert (secret.read_text(), owner(secret)) == ("by root", (0, 0))


async def test_the_agent_keeps_its_own_rights(launch: Launch, shared: Path) -> None:
    client = await launch("--drop-to", USER)
    for n in range(20):
        await client.write(str(shared / f"{n}"), b"x")
        assert (await client.exec("id -u", user="root")).stdout == b"0\n"
        await client.write(str(shared / f"root-{n}"), b"x", user="root")
        assert owner(shared / f"root-{n}") == (0, 0)


async def test_root_keeps_the_owner_of_what_it_replaces(agent: AgentClient, shared: Path) -> None:
    (shared / "theirs").write_text("x")
    os.chown(shared / "theirs", 12345, 54321)
    (shared / "theirs").chmod(0o640)
    await agent.write(str(shared / "theirs"), b"new")
    assert owner(shared / "theirs") == (12345, 54321)
    assert stat.S_IMODE((shared / "theirs").stat().st_mode) == 0o640
