"""A small system-call filter that closes what namespaces leave open.

Kernel keyrings, BPF, performance events and io_uring are not namespaced, or have a history of breaking
out; socket families other than Unix, IP, netlink and packet (vsock above all) ignore network namespaces;
nested user namespaces widen what the kernel exposes. Everything else stays allowed: tasks may debug, trace
and serve.
"""

from __future__ import annotations

import errno
import platform
import struct
from dataclasses import dataclass

_LOAD_ABSOLUTE = 0x20
_JUMP_EQUAL = 0x15
_JUMP_GREATER_EQUAL = 0x35
_JUMP_BITS = 0x45
_RETURN = 0x06
_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_CLONE_NEWUSER = 0x10000000
_X32_BIT = 0x40000000
_FAMILIES = (1, 2, 10, 16, 17)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Abi:
    audit: int
    """The kernel's name of the architecture."""
    denied: tuple[int, ...]
    """add_key, request_key, keyctl, perf_event_open, open_by_handle_at, bpf, userfaultfd, kexec, kernel
    modules, io_uring; and i386's socketcall, whose family cannot be read by a filter."""
    socket: int
    """Number of socket(family, ...)."""
    clone: int
    """Number of clone(flags, ...)."""
    unshare: int
    """Number of unshare(flags)."""
    x32: bool = False
    """Refuse the x32 numbers, which would go round the list."""


_IO_URING = (425, 426, 427)
_CLONE3 = 435
_X86_64 = _Abi(
    audit=0xC000003E,
    denied=(248, 249, 250, 298, 304, 321, 323, 246, 320, 175, 176, 313, *_IO_URING),
    socket=41,
    clone=56,
    unshare=272,
    x32=True,
)
_I386 = _Abi(
    audit=0x40000003,
    denied=(286, 287, 288, 336, 342, 357, 374, 283, 128, 129, 350, 102, *_IO_URING),
    socket=359,
    clone=120,
    unshare=310,
)
_AARCH64 = _Abi(
    audit=0xC00000B7,
    denied=(217, 218, 219, 241, 265, 280, 282, 104, 294, 105, 106, 273, *_IO_URING),
    socket=198,
    clone=220,
    unshare=97,
)
_MACHINES = {"x86_64": (_X86_64, _I386), "aarch64": (_AARCH64,)}


def filter_program(machine: str | None = None, *, nested_namespaces: bool = False) -> bytes | None:
    """The filter as `bwrap --seccomp` reads it; None on a machine whose numbers are not known here."""
    abis = _MACHINES.get(machine or platform.machine())
    if abis is None:
        return None
    program: list[bytes] = []
    for abi in abis:
        section = _section(abi, nested=nested_namespaces)
        program += [
            _op(_LOAD_ABSOLUTE, _ARCHITECTURE),
            *_unless_equal(abi.audit, len(section)),
            *section,
        ]
    return b"".join([*program, _refuse(errno.ENOSYS)])


def _section(abi: _Abi, *, nested: bool) -> list[bytes]:
    load_argument = _op(_LOAD_ABSOLUTE, _FIRST_ARGUMENT)
    code = [_op(_LOAD_ABSOLUTE, _NUMBER)]
    if abi.x32:
        code += [_op(_JUMP_GREATER_EQUAL, _X32_BIT, 0, 1), _refuse(errno.ENOSYS)]
    for number in abi.denied:
        code += [_op(_JUMP_EQUAL, number, 0, 1), _refuse(errno.EPERM)]
    if not nested:
        code += [_op(_JUMP_EQUAL, _CLONE3, 0, 1), _refuse(errno.ENOSYS)]
        for number in (abi.clone, abi.unshare):
            body = [
                load_argument,
                _op(_JUMP_BITS, _CLONE_NEWUSER, 0, 1),
                _refuse(errno.EPERM),
                _op(_RETURN, _ALLOW),
            ]
            code += [*_unless_equal(number, len(body)), *body]
    families = [_op(_JUMP_EQUAL, family, len(_FAMILIES) - i, 0) for i, family in enumerate(_FAMILIES)]
    body = [load_argument, *families, _refuse(errno.EAFNOSUPPORT)]
    code += [*_unless_equal(abi.socket, len(body)), *body]
    return [*code, _op(_RETURN, _ALLOW)]


def _unless_equal(value: int, skipped: int) -> list[bytes]:
    return [_op(_JUMP_EQUAL, value, 0, skipped)]


def _refuse(number: int) -> bytes:
    return _op(_RETURN, _ERRNO | number)


def _op(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, operand)
