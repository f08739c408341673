"""Two groups of attempts at one task compared."""

from __future__ import annotations

from fractions import Fraction
from math import comb


def fisher_p(passed_a: int, total_a: int, passed_b: int, total_b: int) -> float:
    """Two-sided p-value of Fisher's exact test: the share, given all four margins, of tables that are at most
    as likely as the one seen (Fisher 1935; summed by likelihood, as Freeman and Halton 1951)."""
    passed, total = passed_a + passed_b, total_a + total_b
    low, high = max(0, passed - total_b), min(passed, total_a)
    ways = {n: comb(total_a, n) * comb(total_b, passed - n) for n in range(low, high + 1)}
    seen = ways[passed_a]
    return float(Fraction(sum(way for way in ways.values() if way <= seen), comb(total, passed)))
