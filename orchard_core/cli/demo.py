"""`orchard demo`."""

from __future__ import annotations


def demo() -> None:
    """Run tasks of two task sets with scripted models."""
