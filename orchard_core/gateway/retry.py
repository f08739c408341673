"""How often a failed call is repeated, and how long it rests before."""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Exponential back-off with full jitter; a pause that the upstream asks for is a floor."""

    attempts: int = 6
    """Attempts in all, the first included."""
    base_s: float = 0.5
    """Upper bound of the first pause, seconds; it doubles from one attempt to the next."""
    cap_s: float = 30.0
    """Upper bound of any pause of our own choice, seconds."""
    longest_s: float = 300.0
    """An upstream that asks for a longer pause is given up at once."""
    rng: random.Random = field(default_factory=random.Random, repr=False)
    """Draws the jitter."""

    def pause(self, failed: int, asked_s: float | None) -> float | None:
        """Seconds before the next attempt after `failed` attempts; None: give up."""
        if failed >= self.attempts or (asked_s is not None and asked_s > self.longest_s):
            return None
        jitter = self.rng.uniform(0.0, min(self.cap_s, self.base_s * 2.0 ** (failed - 1)))
        return jitter if asked_s is None else asked_s + jitter
