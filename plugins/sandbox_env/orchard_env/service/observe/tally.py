"""Plain sums of what has happened since the process began, for `orchard env top` and the status page."""

from __future__ import annotations

from collections import Counter


class Tally:
    """Cheap to add to, cheap to read."""

    def __init__(self) -> None:
        self.requests = 0
        """Requests answered."""
        self.ready = 0
        """Sandboxes that came up."""
        self.create_s = 0.0
        """Seconds that these took together."""
        self.execs: Counter[str] = Counter()
        """Commands that ended, by tenant's label."""
        self.timed = 0
        """Commands whose overhead is known."""
        self.overhead_s = 0.0
        """Seconds of overhead of these together."""
        self.failures: Counter[str] = Counter()
        """Sandboxes that did not come up or ended by themselves, by class of the error."""
        self.pool: Counter[str] = Counter()
        """`hit` and `miss`."""

    def made(self, outcome: str, seconds: float) -> None:
        """A sandbox came up or did not."""
        if outcome == "ready":
            self.ready += 1
            self.create_s += seconds

    def ran(self, tenant: str, overhead_s: float | None) -> None:
        """A command ended."""
        self.execs[tenant] += 1
        if overhead_s is not None:
            self.timed += 1
            self.overhead_s += overhead_s
