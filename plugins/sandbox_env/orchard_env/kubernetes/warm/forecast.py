"""How many pods are ready in time for the demand there will be, told from the demand there was."""

from __future__ import annotations

import math


class Demand:
    """The rate at which sandboxes of one shape are asked for, weighted exponentially.

    With askings at t_1..t_n and the time constant T: rate(t) = sum over i of exp(-(t - t_i) / T) / T.
    An asking may be noted late and out of order: it then counts as much as it would have by now, so that a
    process that just came up learns the demand of before from the pods that stand.
    """

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._weight = 0.0
        self._at = 0.0

    def note(self, asked: float, now: float) -> None:
        """One sandbox was asked for. Both are seconds by the same clock."""
        self._decay(now)
        self._weight += math.exp(min(0.0, asked - now) / self._window_s)

    def rate(self, now: float) -> float:
        """Askings a second."""
        self._decay(now)
        return self._weight / self._window_s

    def _decay(self, now: float) -> None:
        if now > self._at:
            self._weight *= math.exp((self._at - now) / self._window_s)
            self._at = now


class LeadTime:
    """Seconds from a pod's creation until it can be claimed, averaged exponentially: a = a + (x - a) / 4."""

    def __init__(self, first_s: float = 5.0) -> None:
        self.seconds = first_s
        """The average; a guess until the first pod was ready."""
        self._known = False

    def note(self, seconds: float) -> None:
        """A pod took so long; at least a second, for the times of the cluster are whole ones."""
        seconds = max(1.0, seconds)
        self.seconds = self.seconds + (seconds - self.seconds) / 4 if self._known else seconds
        self._known = True


def stock(rate: float, lead_s: float, margin: float) -> int:
    """How many pods, ready and under way together, cover the demand until one that is begun now is ready.

    The base-stock level of an inventory under Poisson demand: mu = rate * lead_s is the demand during the
    lead time, its standard deviation the root of mu; S = ceil(mu + margin * sqrt(mu)), and every claim begins
    the next pod. (Normal approximation of the newsvendor quantile; P. Zipkin, Foundations of Inventory
    Management, 2000, chapter 6.) Bursts vary more than Poisson's: raise `margin` or `least` for them.
    """
    mean = rate * lead_s
    # A demand that has all but died away is none.
    return math.ceil(mean + margin * math.sqrt(mean) - 0.05) if mean > 0 else 0
