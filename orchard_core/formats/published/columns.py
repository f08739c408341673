"""The columns of both published parts, by which their files are told from others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SWE = ("tools", "messages", "metadata")
"""Columns of the part `swe`."""
GUI = ("messages", "images", "reward", "status", "metadata")
"""Columns of the part `gui`."""


def is_swe(record: Mapping[str, Any]) -> bool:
    """Whether a record has exactly the columns of `swe`."""
    return set(record) == set(SWE) and isinstance(record["metadata"], str)


def is_gui(record: Mapping[str, Any]) -> bool:
    """Whether a record has exactly the columns of `gui`."""
    return set(record) == set(GUI) and isinstance(record["metadata"], str)


def is_published(record: Mapping[str, Any]) -> bool:
    """Either."""
    return is_swe(record) or is_gui(record)
