"""What an agent left, looked at before a verifier's sandbox gets it."""

from __future__ import annotations

import io
import tarfile
import tracemalloc

import pytest

from orchard_core import VerifierFailed
from orchard_core.reward import artifacts
from orchard_core.reward.artifacts import sift

SIZE = 64 << 20


def tree(size: int, *, trap: bool) -> bytes:
    """One file of so many bytes, and a link to the answers."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        big = tarfile.TarInfo("big.bin")
        big.size = size
        archive.addfile(big, io.BytesIO(bytes(size)))
        if trap:
            link = tarfile.TarInfo("answer")
            link.type, link.linkname = tarfile.SYMTYPE, "/tests/expected.txt"
            archive.addfile(link)
    return out.getvalue()


@pytest.mark.parametrize("trap", [False, True])
def test_a_large_tree_is_sifted_without_a_second_copy_in_memory(trap: bool) -> None:
    data = tree(SIZE, trap=trap)
    tracemalloc.start()
    try:
        found = sift(data, "/workspace")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < SIZE * 3 // 4
    assert found.traps == (("answer",) if trap else ())
    with found.tar, tarfile.open(fileobj=found.tar) as kept:
        assert [(member.name, member.size) for member in kept] == [("big.bin", SIZE)]


def test_a_tree_of_too_many_entries_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "ENTRIES", 1)
    with pytest.raises(VerifierFailed, match="more than 1 entries"):
        sift(tree(1, trap=True), "/workspace")
