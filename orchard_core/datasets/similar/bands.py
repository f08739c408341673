"""Which parts of a signature are looked up: locality-sensitive hashing by bands.

A signature is cut into b bands of r values. Two texts of resemblance s share a whole band with probability
1 - (1 - s^r)^b, an S-curve with its rise near (1/b)^(1/r) (Leskovec, Rajaraman and Ullman, "Mining of Massive
Datasets", 3rd edition, section 3.4.2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from orchard_core.datasets.similar.minhash import SIZE
from orchard_core.errors import ConfigError

FOUND = 0.95
"""Probability with which a pair just at the threshold is looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BandPlan:
    """How a signature is cut."""

    bands: int
    """b"""
    rows: int
    """r: values, which are bytes, of a band."""

    def chance(self, resemblance: float) -> float:
        """Probability that a pair of this resemblance shares a band."""
        return 1.0 - (1.0 - resemblance**self.rows) ** self.bands

    def keys(self, signature: bytes) -> Iterator[bytes]:
        """What to look up: each band with its number in front."""
        for band in range(self.bands):
            start = band * self.rows
            yield bytes((band,)) + signature[start : start + self.rows]


def band_plan(threshold: float) -> BandPlan:
    """The longest bands, thus the fewest pairs to look at, that still find a pair at the threshold with a
    probability of `FOUND`. Raises ConfigError for a threshold outside (0, 1]."""
    check_threshold(threshold)
    fitting = BandPlan(bands=SIZE, rows=1)
    for rows in range(2, SIZE + 1):
        plan = BandPlan(bands=SIZE // rows, rows=rows)
        if plan.chance(threshold) >= FOUND:
            fitting = plan
    return fitting


def check_threshold(threshold: float) -> None:
    """Raises ConfigError for one outside (0, 1]."""
    if not 0.0 < threshold <= 1.0:
        raise ConfigError(
            f"a resemblance of {threshold:g} was asked for",
            hint="give a number above 0, up to 1, such as 0.8",
        )
