"""Secrets planted all over the host are not found by a thorough search from inside."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchard_core.sandbox.local.base import build_base
from orchard_core.sandbox.local.provider import LocalProvider
from orchard_core.sandbox.local.veil import private_paths
from orchard_core.types.sandbox import SandboxSpec

_SEARCH = (
    "grep -rlaF {mark} / --exclude-dir=proc --exclude-dir=usr --exclude-dir=dev 2>/dev/null;"
    "grep -rlaF {mark} /usr/local /usr/share/polkit-1 2>/dev/null;"
    "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/keys /proc/mounts 2>/dev/null | grep -aF {mark};"
    "find / -xdev -name '*{mark}*' -not -path '/proc/*' 2>/dev/null; env | grep -F {mark}; true"
)


async def test_planted_secrets_are_not_found(
    provider: LocalProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = f"secret-{secrets.token_hex(12)}"
    home, project = tmp_path / "home", tmp_path / "project"
    monkeypatch.setenv("OPENAI_API_KEY", mark)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", mark)
    monkeypatch.setenv("HOME", str(home))
    for name in (".ssh/id_ed25519", ".aws/credentials", ".kube/config", ".netrc", ".config/gcloud/adc.json"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(mark)
    project.mkdir()
    (project / ".env").write_text(f"KEY={mark}")
    monkeypatch.chdir(project)
    real_home = Path(f"~{_user()}").expanduser() / f".{mark}"
    real_home.write_text(mark)
    try:
        async with await provider.create(SandboxSpec()) as sandbox:
            found = await sandbox.exec(_SEARCH.format(mark=mark), timeout=60)
            # The search's own command line is the one thing that may hold the mark.
            assert [line for line in found.stdout_text.splitlines() if "grep -rlaF" not in line] == []
            for path in (real_home, project / ".env", home / ".ssh/id_ed25519"):
                assert not (await sandbox.exec(["cat", str(path)])).ok
    finally:
        real_home.unlink()


def _user() -> str:
    import os
    import pwd

    return pwd.getpwuid(os.geteuid()).pw_name


async def test_sockets_of_the_host_cannot_be_reached(provider: LocalProvider, tmp_path: Path) -> None:
    abstract = f"\0orchard-{secrets.token_hex(6)}"
    with socket.socket(socket.AF_UNIX) as named, socket.socket(socket.AF_UNIX) as nameless:
        named.bind(str(tmp_path / "s"))
        named.listen()
        nameless.bind(abstract)
        nameless.listen()
        async with await provider.create(SandboxSpec()) as sandbox:
            for address in (str(tmp_path / "s"), abstract):
                code = f"import socket; socket.socket(socket.AF_UNIX).connect({address!r})"
                assert not (await sandbox.exec(["python3", "-c", code])).ok
            listed = await sandbox.exec("find / -xdev -type s 2>/dev/null")
            assert listed.stdout == b"", "no socket lies inside, the agent's own included"


async def test_one_sandbox_cannot_see_the_files_of_another(provider: LocalProvider, state: Path) -> None:
    mark = secrets.token_hex(12)
    async with (
        await provider.create(SandboxSpec()) as one,
        await provider.create(SandboxSpec()) as two,
    ):
        await one.write("/workspace/answer", mark.encode())
        found = await two.exec(f"grep -rlaF {mark[:12]}{mark[12:]} / --exclude-dir=proc --exclude-dir=usr")
        assert found.stdout == b""
        assert not (await two.exec(["ls", str(state)])).ok


_ONE_AFTER_ANOTHER = pytest.mark.xdist_group("files-below-usr")
"""A sandbox that starts while another worker takes its files away could not cover them."""


@pytest.fixture
def hidden_mark() -> Iterator[str]:
    """Files below /usr that not everybody may read, as an operator's own programs leave them."""
    if os.geteuid() != 0:
        pytest.skip("only root may write there, and only a root driver could read it")
    mark = f"secret-{secrets.token_hex(12)}"
    top = Path("/usr/local/share") / mark
    (top / "closed").mkdir(parents=True)
    (top / "closed/file").write_text(mark)
    (top / "closed").chmod(0o750)
    for name, mode in (("owner", 0o600), ("group", 0o640), ("runnable", 0o711), ("shown", 0o644)):
        (top / name).write_text(mark)
        (top / name).chmod(mode)
    private_paths.cache_clear()
    yield mark
    shutil.rmtree(top)
    private_paths.cache_clear()


@_ONE_AFTER_ANOTHER
async def test_a_root_driver_shows_nothing_of_usr_that_others_may_not_read(
    provider: LocalProvider, hidden_mark: str
) -> None:
    top = f"/usr/local/share/{hidden_mark}"
    async with await provider.create(SandboxSpec()) as sandbox:
        found = await sandbox.exec(["grep", "-rlaF", hidden_mark, "/usr/local/share"])
        assert found.stdout_text.split() == [f"{top}/shown"]
        for name in ("owner", "group", "runnable", "closed/file"):
            assert not (await sandbox.exec(["cat", f"{top}/{name}"])).ok
        beside = await sandbox.exec(
            "stat -c %a . && mkdir -p closed && echo new | tee owner closed/file", cwd=top
        )
        assert beside.stdout == b"755\nnew\n", "the names are free for the sandbox's own files"
    assert Path(top, "owner").read_text() == hidden_mark


@_ONE_AFTER_ANOTHER
async def test_without_overlays_the_same_files_are_covered(
    provider: LocalProvider, hidden_mark: str, tmp_path: Path
) -> None:
    await provider.capabilities()
    host = provider._host  # a host whose file systems carry no overlays cannot be had on demand
    assert host is not None
    provider._host = replace(host, overlays=False)
    async with await provider.create(SandboxSpec()) as sandbox:
        found = await sandbox.exec(["grep", "-rlaF", hidden_mark, "/usr/local/share"])
        assert found.stdout_text.split() == [f"/usr/local/share/{hidden_mark}/shown"]
    Path("/usr/local/share", hidden_mark, "group").unlink()
    async with await provider.create(SandboxSpec()) as sandbox:
        assert (await sandbox.exec(["ls", f"/usr/local/share/{hidden_mark}"])).stdout_text.split() == [
            "closed", "owner", "runnable", "shown",
        ]  # fmt: skip


def test_the_search_for_closed_files_takes_links_as_open_and_looks_into_no_closed_directory(
    tmp_path: Path,
) -> None:
    (tmp_path / "closed").mkdir(mode=0o700)
    (tmp_path / "closed/below").touch(0o600)
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "open/file").touch(0o600)
    (tmp_path / "open/shown").touch(0o644)
    (tmp_path / "link").symlink_to("closed")
    assert sorted(private_paths(tmp_path)) == [tmp_path / "closed", tmp_path / "open/file"]


def test_the_base_takes_no_private_key_and_nothing_unreadable(tmp_path: Path) -> None:
    host, base = tmp_path / "host", tmp_path / "base"
    certs = host / "etc/ssl/certs"
    certs.mkdir(parents=True)
    (host / "usr").mkdir()
    (host / "etc/ssl/private").mkdir()
    (host / "etc/pki/tls/certs").mkdir(parents=True)
    (host / "etc/pki/tls/certs/open.pem").write_text("in a closed directory")
    (host / "etc/pki").chmod(0o700)
    (certs / "good.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    (certs / "mixed.pem").write_text("-----BEGIN RSA PRIVATE KEY-----\n")
    (certs / "closed.pem").write_text("closed")
    (certs / "closed.pem").chmod(0o600)
    (host / "etc/ssl/private/key.pem").write_text("key")
    (host / "etc/shadow").write_text("root:hash")
    build_base(base, host)
    assert sorted(path.name for path in (base / "etc/ssl").rglob("*") if path.is_file()) == ["good.pem"]
    assert not (base / "etc/shadow").exists()
    assert not (base / "etc/pki").exists()
    assert "nobody" in (base / "etc/passwd").read_text()
