"""When two cells are said to differ."""

from __future__ import annotations

from orchard_core.evals.matrix_report import PairedDifference

SIGNIFICANT = 0.05
"""A corrected p-value below this is called a difference."""


def is_significant(found: PairedDifference) -> bool:
    """It is, after the correction for many comparisons."""
    return found.p_adjusted is not None and found.p_adjusted < SIGNIFICANT
