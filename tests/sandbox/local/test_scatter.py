"""Where the trees of many sandboxes lie on the disk."""

from __future__ import annotations

import fcntl
import os
import struct
import tempfile
from pathlib import Path

import pytest

from orchard_core.sandbox.local.scatter import scatter_below

GET_FLAGS, TOP_OF_HIERARCHIES = 0x80086601, 0x20000


def flags_of(directory: Path) -> int:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        (flags,) = struct.unpack("=Q", fcntl.ioctl(descriptor, GET_FLAGS, bytes(8)))
    finally:
        os.close(descriptor)
    return int(flags)


def kind_of_file_system(directory: Path) -> str:
    """As the kernel's table of mounts names it."""
    device = directory.stat().st_dev
    name = f"{os.major(device)}:{os.minor(device)}"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if line.split()[2] == name:
            return line.partition(" - ")[2].split()[0]
    return "unknown"


def test_on_ext4_each_tree_begins_in_a_part_of_its_own(tmp_path: Path) -> None:
    if kind_of_file_system(tmp_path) != "ext4":
        pytest.skip("the temporary directory is not on ext4: set TMPDIR to one that is")
    before = flags_of(tmp_path)
    scatter_below(tmp_path)
    assert flags_of(tmp_path) == before | TOP_OF_HIERARCHIES


def test_a_file_system_without_such_a_mark_is_left_as_it_is() -> None:
    if kind_of_file_system(Path("/dev/shm")) != "tmpfs":
        pytest.skip("/dev/shm is not in memory here")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        before = flags_of(Path(name))
        scatter_below(Path(name))
        assert flags_of(Path(name)) == before
