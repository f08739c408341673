"""Secrets planted all over the host are not found by a thorough search from inside."""

from __future__ import annotations

import secrets
import socket
from pathlib import Path

import pytest

from orchard_core.sandbox.local.base import build_base
from orchard_core.sandbox.local.provider import LocalProvider
from orchard_core.types.sandbox import SandboxSpec

_SEARCH = (
    "grep -rlaF {mark} / --exclude-dir=proc --exclude-dir=usr --exclude-dir=dev 2>/dev/null;"
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


def test_the_base_takes_no_private_key_and_nothing_unreadable(tmp_path: Path) -> None:
    host, base = tmp_path / "host", tmp_path / "base"
    certs = host / "etc/ssl/certs"
    certs.mkdir(parents=True)
    (host / "usr").mkdir()
    (host / "etc/ssl/private").mkdir()
    (certs / "good.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    (certs / "mixed.pem").write_text("-----BEGIN RSA PRIVATE KEY-----\n")
    (certs / "closed.pem").write_text("closed")
    (certs / "closed.pem").chmod(0o600)
    (host / "etc/ssl/private/key.pem").write_text("key")
    (host / "etc/shadow").write_text("root:hash")
    build_base(base, host)
    assert sorted(path.name for path in (base / "etc/ssl").rglob("*") if path.is_file()) == ["good.pem"]
    assert not (base / "etc/shadow").exists()
    assert "nobody" in (base / "etc/passwd").read_text()
