"""The key file: who may write it, what a broken one costs, and what is read while it is replaced."""

from __future__ import annotations

import multiprocessing
import stat
from pathlib import Path

import pytest
from orchard_env.service.faults import KeyRefused
from orchard_env.service.state.memory import MemoryState
from orchard_env.service.tenancy.books import FileBook
from orchard_env.service.tenancy.issuing import create_key, revoke_key
from orchard_env.service.tenancy.key_file import FileKeys, edit_key_file, read_key_file
from orchard_env.service.tenancy.keyed import KeyedTenancy
from orchard_env.service.tenancy.records import TenantRecord

from orchard_core import ConfigError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "keys.json"


async def test_it_is_its_owners_alone_and_stays_so(path: Path) -> None:
    for _ in range(2):
        await create_key(FileBook(path), "alice")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {file.name for file in path.parent.iterdir()} == {"keys.json", "keys.json.lock"}


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
async def test_one_that_others_may_write_to_is_refused(path: Path, mode: int) -> None:
    await create_key(FileBook(path), "alice")
    path.chmod(mode)
    with pytest.raises(ConfigError, match="others may write") as refused:
        FileKeys(path)
    assert refused.value.hint == f"chmod 600 {path}"


async def test_one_that_others_may_read_is_taken_because_mounted_secrets_are(path: Path) -> None:
    issued = await create_key(FileBook(path), "alice")
    path.chmod(0o644)
    tenancy = KeyedTenancy(FileKeys(path), MemoryState())
    assert (await tenancy.identify(issued.text)).name == "alice"


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"keys": [{}]}', b'{"version": 1, "more": 2}', b"\xff"]
)
def test_a_broken_one_is_told_with_where_it_is_broken(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match=r"keys\.json is broken at"):
        read_key_file(path)
    with pytest.raises(ConfigError):
        edit_key_file(path, lambda access: access)
    assert path.read_bytes() == content, "what might still be mended is not overwritten"


async def test_while_it_is_broken_or_gone_the_last_keys_stay_good_and_it_is_told(path: Path) -> None:
    issued = await create_key(FileBook(path), "alice")
    keys = FileKeys(path)
    tenancy = KeyedTenancy(keys, MemoryState())
    whole = path.read_bytes()
    for content in (b"{", None):
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
        assert (await tenancy.identify(issued.text)).name == "alice"
        assert str(path) in keys.fault
    path.write_bytes(whole)
    path.chmod(0o600)
    await revoke_key(FileBook(path), issued.record.id)
    with pytest.raises(KeyRefused):
        await tenancy.identify(issued.text)
    assert keys.fault == ""


async def test_a_mounted_secret_that_is_swapped_by_its_link_is_read_anew(tmp_path: Path) -> None:
    """As the kubelet does it: keys.json -> ..data/keys.json, ..data -> a folder that is replaced whole."""
    for version in ("v1", "v2"):
        await create_key(FileBook(tmp_path / version / "keys.json"), version)
    data = tmp_path / "..data"
    data.symlink_to("v1")
    (tmp_path / "keys.json").symlink_to("..data/keys.json")
    keys = FileKeys(tmp_path / "keys.json")
    assert {key.tenant for key in keys.index.keys.values()} == {"v1"}
    fresh = tmp_path / "..fresh"
    fresh.symlink_to("v2")
    fresh.rename(data)
    assert {key.tenant for key in keys.index.keys.values()} == {"v2"}


async def test_a_link_is_written_through_and_not_replaced(tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "real.json")
    await create_key(FileBook(tmp_path / "real.json"), "alice")
    await create_key(FileBook(link), "bob")
    assert link.is_symlink()
    assert {key.tenant for key in read_key_file(tmp_path / "real.json").keys} == {"alice", "bob"}


def _add(path: Path, number: int) -> None:
    for step in range(5):
        tenant = TenantRecord(name=f"t{number}-{step}")
        edit_key_file(path, lambda access, tenant=tenant: access.with_tenant(tenant))  # type: ignore[misc]


def test_several_processes_that_edit_at_once_lose_nothing(path: Path) -> None:
    spawn = multiprocessing.get_context("fork")
    editors = [spawn.Process(target=_add, args=(path, number)) for number in range(4)]
    for editor in editors:
        editor.start()
    for editor in editors:
        editor.join(60)
    assert len(read_key_file(path).tenants) == 20
