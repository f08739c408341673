"""How far a pull or build is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageProgress:
    """How far a pull or build is."""

    image: str
    """What is fetched or built."""
    done_bytes: int = 0
    """Downloaded so far, of all layers together."""
    total_bytes: int = 0
    """Size of the layers heard of so far; 0 while none is."""
    words: str = ""
    """The engine's latest words."""


OnProgress = Callable[[ImageProgress], None]
