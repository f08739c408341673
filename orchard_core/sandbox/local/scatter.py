"""Spreading many small trees over a disk, so that making one does not wait on what became of the others.

ext4 takes the inodes of a directory from its parent's part of the disk, where it passes over each that was
freed within the last minute, one by one. Each overlay frees some as it is mounted, so that a thousand
sandboxes in one part cost seconds of such search. What lies below the top of a hierarchy begins in a part
chosen at random instead.
"""

from __future__ import annotations

import fcntl
import os
import struct
from contextlib import suppress
from pathlib import Path

_GET_FLAGS = 0x80086601
_SET_FLAGS = 0x40086602
_TOP_OF_HIERARCHIES = 0x00020000
_FLAGS = struct.Struct("=Q")


def scatter_below(directory: Path) -> None:
    """Let each directory made in this one begin in a part of the disk of its own. A file system that has no
    such mark refuses it, and is left as it is."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            (flags,) = _FLAGS.unpack(fcntl.ioctl(descriptor, _GET_FLAGS, _FLAGS.pack(0)))
            fcntl.ioctl(descriptor, _SET_FLAGS, _FLAGS.pack(flags | _TOP_OF_HIERARCHIES))
    finally:
        os.close(descriptor)
