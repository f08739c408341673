"""A text as normalised words in arrays, and hashes of runs of words. No word becomes a Python object."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from orchard_core.datasets.similar.arrays import Bytes, Places, Words64, np

LIMIT = 4 << 20
"""Longest text looked at as a whole, characters: of a longer one, the first and the last half of so many."""
_TABLE = bytes(
    byte if byte >= 0x80 or chr(byte).isdigit() or chr(byte).islower() else 0x20 for byte in range(256)
)
_ALONE = re.compile("([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])")
_FOREIGN_MARKS = re.compile(r"[^\w\x00-\x7f]+")
_BASE = 0x9E3779B97F4A7C15
_INVERSE = pow(_BASE, -1, 1 << 64)


@dataclass(frozen=True, slots=True)
class Words:
    """W words: lower case, one blank between two."""

    text: bytes
    """The words in UTF-8."""
    starts: Places
    """[W] where each begins in `text`."""
    ends: Places
    """[W] where each ends."""

    def __len__(self) -> int:
        return len(self.starts)

    def run(self, first: int, stop: int) -> str:
        """The words from `first` up to `stop`, as text."""
        if stop <= first:
            return ""
        return self.text[self.starts[first] : self.ends[stop - 1]].decode("utf-8", "replace")


def split(text: str) -> Words:
    """Words are runs of letters and digits after NFKC and case folding; marks, blanks and underscores part
    them, and an ideograph or kana is a word of its own. Lone surrogates count as marks."""
    if len(text) > LIMIT:
        text = f"{text[: LIMIT // 2]} {text[-LIMIT // 2 :]}"
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).casefold()
        text = _ALONE.sub(r" \1 ", _FOREIGN_MARKS.sub(" ", text))
    marked = np.frombuffer(text.lower().encode("utf-8", "replace").translate(_TABLE), dtype=np.uint8)
    return _compact(marked)


def normal(text: str) -> str:
    """The words alone: two texts with the same are the same text."""
    return split(text).text.decode("utf-8", "replace")


def _compact(marked: Bytes) -> Words:
    solid = marked != 0x20
    before = np.empty_like(solid)
    before[:1] = False
    before[1:] = solid[:-1]
    dense = marked[solid | before]
    if len(dense) and dense[-1] == 0x20:
        dense = dense[:-1]
    blanks = np.flatnonzero(dense == 0x20)
    if not len(dense):
        return Words(b"", blanks, blanks)
    starts = np.concatenate([np.zeros(1, blanks.dtype), blanks + 1])
    ends = np.concatenate([blanks, np.full(1, len(dense), blanks.dtype)])
    return Words(dense.tobytes(), starts, ends)


def runs(words: Words, length: int) -> Words64:
    """[W - length + 1] a hash of each run of `length` words; of a shorter text, one hash of all of it.

    A run's hash is the polynomial sum of its bytes modulo 2^64, read off the running sums of the whole text
    (as in Rabin's fingerprint by a rolling window) and then mixed: the same on every platform.
    """
    count = len(words)
    if not count:
        return np.zeros(0, np.uint64)
    length = min(length, count)
    data = np.frombuffer(words.text, dtype=np.uint8)
    size = 1 << max(len(data), 4096).bit_length()
    sums = np.zeros(len(data) + 1, np.uint64)
    np.cumsum((data.astype(np.uint64) + np.uint64(1)) * _powers(_BASE, size)[: len(data)], out=sums[1:])
    first, last = words.starts[: count - length + 1], words.ends[length - 1 :]
    return mixed((sums[last] - sums[first]) * _powers(_INVERSE, size)[first])


def mixed(values: Words64) -> Words64:
    """Each bit of a value spread over all of it: the finaliser of MurmurHash3 (Appleby, public domain)."""
    values = (values ^ (values >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    values = (values ^ (values >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return values ^ (values >> np.uint64(33))


@lru_cache(maxsize=8)
def _powers(base: int, size: int) -> Words64:
    powers = np.full(size, base, np.uint64)
    powers[0] = 1
    powers = np.multiply.accumulate(powers)
    powers.setflags(write=False)
    return powers
