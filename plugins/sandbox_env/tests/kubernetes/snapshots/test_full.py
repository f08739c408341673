"""A storage that is full."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from orchard_env.kubernetes.snapshots.config import SnapshotConfig
from orchard_env.kubernetes.snapshots.shelf import SnapshotShelf

from orchard_core import DiskFull, ImageRef, SandboxSpec

SPEC = SandboxSpec(image=ImageRef(kind="oci", value="busybox:1.36"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(tmp_path)], capture_output=True, check=False
    )
    if made.returncode != 0:
        pytest.skip("a small file system needs the right to mount one")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


async def test_a_full_storage_is_told_by_type_and_is_left_as_it_was(small_disk: Path) -> None:
    async def large() -> AsyncIterator[bytes]:
        for _ in range(16):
            yield os.urandom(1 << 20)

    shelf = SnapshotShelf(SnapshotConfig(url=small_disk.as_uri(), chunk_mb=1), "kubernetes")
    with pytest.raises(DiskFull):
        await shelf.save(large(), SPEC)
    assert [path for path in small_disk.rglob("*") if path.is_file()] == []
