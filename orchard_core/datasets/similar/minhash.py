"""Signatures: the resemblance of two texts, estimated from 128 bytes of each.

MinHash (Broder, "On the resemblance and containment of documents", 1997): under a random permutation of
all shingles, two sets have the same smallest one with a probability equal to their Jaccard resemblance. Kept
are the low 8 bits of 128 such minima (Li and Koenig, "b-Bit Minwise Hashing", WWW 2010), so two different
minima agree with probability 1/256, which the estimate takes off. Its standard error is about
sqrt(J (1 - J) / 128): 0.035 at a resemblance of 0.8.
"""

from __future__ import annotations

from functools import lru_cache

from orchard_core.datasets.similar.arrays import Bytes, NDArray, Words32, Words64, np
from orchard_core.datasets.similar.words import mixed, runs, split

SIZE = 128
"""Bytes of a signature, and permutations."""
SHINGLE = 5
"""Words of a shingle, for texts of some length."""
SHORT_SHINGLE = 3
"""Words of a shingle for instructions: one word changed in a sentence of thirty leaves it at 0.8."""
_BLOCK = 2048


def near_signature(text: str, *, shingle: int = SHINGLE) -> bytes:
    """128 bytes, the same for every process and platform; empty for a text without a word.

    Shingles are runs of `shingle` normalised words; a text of fewer words is one shingle.
    """
    return of_hashes(runs(split(text), shingle))


def of_hashes(hashes: Words64) -> bytes:
    """The signature of a set of hashed shingles, repeats and order no matter."""
    if not len(hashes):
        return b""
    values = (hashes >> np.uint64(32)).astype(np.uint32)
    factors, terms = _permutations()
    least = np.full(SIZE, 0xFFFFFFFF, np.uint32)
    for start in range(0, len(values), _BLOCK):
        permuted = values[None, start : start + _BLOCK] * factors[:, None]
        permuted += terms[:, None]
        np.minimum(least, permuted.min(axis=1), out=least)
    return (least & np.uint32(0xFF)).astype(np.uint8).tobytes()


def near_resemblance(one: bytes, other: bytes) -> float:
    """The estimated Jaccard resemblance, 0 to 1, of what two signatures of one kind stand for."""
    if not one or not other:
        return 0.0
    return float(agreeing(np.frombuffer(one, np.uint8), np.frombuffer(other, np.uint8)[None])[0])


def agreeing(one: Bytes, others: Bytes) -> NDArray[np.float64]:
    """[N] the estimated resemblance of a signature [128] with each of others [N, 128]."""
    same: NDArray[np.float64] = (others == one).mean(axis=1)
    return np.maximum((same - 1 / 256) / (1 - 1 / 256), 0.0)


@lru_cache(maxsize=1)
def _permutations() -> tuple[Words32, Words32]:
    """x -> a x + b modulo 2^32 with odd a: bijections. Drawn by our own mixing, not by a library's generator,
    whose streams may change between releases."""
    drawn = mixed(np.arange(1, 2 * SIZE + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    values = (drawn >> np.uint64(32)).astype(np.uint32)
    return values[:SIZE] | np.uint32(1), values[SIZE:]
