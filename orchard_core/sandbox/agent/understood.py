"""The border at which an agent's answer is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from orchard_core.errors import NotAnAgent


@contextmanager
def understood() -> Iterator[None]:
    """Around what reads an agent's answer: one that no agent gives is NotAnAgent."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise NotAnAgent(
            f"no agent answers so: {error!r}"[:200], hint="something else listens at its address"
        ) from error
