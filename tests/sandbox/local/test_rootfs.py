"""The image `rootfs:PATH`: a tree of its own, never written."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from orchard_core.errors import NoShell, SandboxUnsupported
from orchard_core.sandbox.agent_sandbox import AgentSandbox
from orchard_core.sandbox.local.provider import LocalProvider
from orchard_core.types.sandbox import ImageRef, SandboxSpec


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A root with a shell, cat and id, and the libraries they need, copied from this host."""
    root = tmp_path / "tree"
    for name in ("bin/sh", "bin/cat", "bin/id"):
        program = shutil.which(Path(name).name)
        if program is None:
            pytest.skip(f"this host has no {name}")
        _copy(Path(program), root / name)
    (root / "etc").mkdir()
    (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nsmith:x:1234:1234::/home/smith:/bin/sh\n")
    (root / "data").write_text("image")
    return root


def _copy(program: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(program, target)
    needed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    for word in needed.split():
        if word.startswith("/"):
            library = target.parents[1] / word.lstrip("/")
            library.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(word, library)


def _spec(root: Path, user: str | None = None) -> SandboxSpec:
    return SandboxSpec(image=ImageRef(kind="rootfs", value=str(root)), user=user)


async def _names(sandbox: AgentSandbox) -> set[str]:
    return {entry.name for entry in await sandbox.list("/")}


async def test_it_shows_its_own_files_and_none_of_the_hosts(provider: LocalProvider, tree: Path) -> None:
    async with await provider.create(_spec(tree)) as sandbox:
        assert (await sandbox.exec("cat /data; pwd")).stdout == b"image/workspace\n"
        assert not (await sandbox.exec("cat /etc/os-release /etc/ld.so.cache")).ok
        assert await _names(sandbox) >= {"bin", "data", "etc", "workspace", "tmp", "proc", "dev"}
        assert not await _names(sandbox) & {"home", "var", "opt", "srv", "mnt", "media", "boot", "run"}


async def test_changes_stay_in_the_sandbox(provider: LocalProvider, tree: Path) -> None:
    before = sorted(path.relative_to(tree) for path in tree.rglob("*"))
    async with await provider.create(_spec(tree)) as one, await provider.create(_spec(tree)) as two:
        await one.exec("echo changed > /data; echo new > /new")
        await one.reset_processes()
        assert (await one.exec("cat /data /new")).stdout == b"changed\nnew\n"
        assert (await two.exec("cat /data")).stdout == b"image"
    assert (tree / "data").read_text() == "image"
    assert sorted(path.relative_to(tree) for path in tree.rglob("*")) == before


async def test_a_user_is_looked_up_in_the_image(provider: LocalProvider, tree: Path) -> None:
    async with await provider.create(_spec(tree, "smith")) as sandbox:
        assert (
            await sandbox.exec("id -u; echo $HOME; echo x > ~/f && cat ~/f")
        ).stdout == b"1234\n/home/smith\nx\n"
    with pytest.raises(SandboxUnsupported, match="no user 'jones'"):
        await provider.create(_spec(tree, "jones"))


async def test_an_empty_tree_runs_the_agent_but_has_no_shell(provider: LocalProvider, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    async with await provider.create(_spec(tmp_path / "empty")) as sandbox:
        with pytest.raises(NoShell):
            await sandbox.exec("echo hi")
        await sandbox.write("/workspace/f", b"kept")
        assert await sandbox.read_bytes("/workspace/f") == b"kept"


@pytest.mark.parametrize(
    "text", ["rootfs:relative/path", "rootfs:/no/such/place", "rootfs:/", "oci:debian", "build:/x"]
)
async def test_what_is_no_tree_is_refused_before_anything_starts(provider: LocalProvider, text: str) -> None:
    with pytest.raises(SandboxUnsupported):
        await provider.create(SandboxSpec(image=ImageRef.parse(text)))


async def test_a_link_for_a_passwd_is_not_followed(provider: LocalProvider, tree: Path) -> None:
    (tree / "etc/passwd").unlink()
    (tree / "etc/passwd").symlink_to("/etc/passwd")
    with pytest.raises(SandboxUnsupported, match="no user 'daemon'"):
        await provider.create(_spec(tree, "daemon"))
