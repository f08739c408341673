"""Headers of a hostile archive, before any of them is believed."""

from __future__ import annotations

import tarfile
from typing import Self

from orchard_core.errors import FileError

HEADERS_MAX = 1 << 20
"""Bytes of the long names and attributes of one member; and, likewise, of those meant for all members."""
_GLOBAL = tarfile.XGLTYPE
_SPECIAL = frozenset(
    {
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
        tarfile.XHDTYPE,
        tarfile.SOLARIS_XHDTYPE,
        tarfile.XGLTYPE,
    }
)


def bounded_member() -> type[tarfile.TarInfo]:
    """A TarInfo for one archive. tarfile reads long names and attributes into memory, whatever their size;
    this one raises FileError first."""

    class BoundedMember(tarfile.TarInfo):
        own = 0
        common = 0

        @classmethod
        def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
            member = super().frombuf(buf, encoding, errors)
            if member.size < 0:
                raise FileError("the archive holds a member of negative size")
            if member.type == _GLOBAL:
                cls.common += tarfile.BLOCKSIZE + member.size
            elif member.type in _SPECIAL:
                cls.own += tarfile.BLOCKSIZE + member.size
            else:
                cls.own = 0
            if max(cls.own, cls.common) > HEADERS_MAX:
                raise FileError(f"the archive holds names or attributes of more than {HEADERS_MAX} bytes")
            return member

    return BoundedMember
