"""Token ids in memory, and as a change to an earlier list."""

from __future__ import annotations

from array import array
from collections.abc import Iterable


def ids(values: Iterable[int]) -> array[int]:
    """64-bit token ids: less memory than a list, and compared at memory speed. Raises TypeError or
    OverflowError for anything that is not such an integer."""
    return array("q", values)


def common_prefix(left: array[int], right: array[int]) -> int:
    """How many ids both have in common at the front. Bisects over slices, each compared in C."""
    low, high = 0, min(len(left), len(right))
    if left[:high] == right[:high]:
        return high
    while low + 1 < high:
        middle = (low + high) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle
    return low if high == 0 or left[low] != right[low] else low + 1
