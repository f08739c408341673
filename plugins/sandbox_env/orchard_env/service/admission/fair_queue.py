"""Who is next: deficit round robin over tenants, first come first served within one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

_Item = TypeVar("_Item")


@dataclass(slots=True)
class _Flow(Generic[_Item]):
    tenant: str
    weight: float
    credit: float = 0.0
    items: dict[_Item, None] = field(default_factory=dict)


class FairQueue(Generic[_Item]):
    """Items that wait, by tenant. Every operation costs the same however many items wait; some grow with the
    number of tenants. (M. Shreedhar and G. Varghese, "Efficient fair queueing using deficit round robin",
    1995; here each item costs 1, and a tenant's quantum is its weight.)"""

    def __init__(self) -> None:
        self._flows: dict[str, _Flow[_Item]] = {}
        self._turns: deque[_Flow[_Item]] = deque()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def waiting(self, tenant: str) -> int:
        """How many of a tenant wait."""
        flow = self._flows.get(tenant)
        return len(flow.items) if flow else 0

    def share(self, tenant: str, weight: float) -> float:
        """The part of the turns that a tenant of this weight gets, beside those that wait now."""
        others = sum(flow.weight for flow in self._flows.values() if flow.tenant != tenant)
        return weight / (weight + others)

    def push(self, tenant: str, weight: float, item: _Item) -> None:
        """To the end of the tenant's own queue. Items must differ."""
        flow = self._flows.get(tenant)
        if flow is None:
            flow = self._flows[tenant] = _Flow(tenant, weight)
            self._turns.append(flow)
        flow.weight = weight
        flow.items[item] = None
        self._size += 1

    def pop(self, may: Callable[[str], bool] = lambda _: True) -> _Item | None:
        """The next item of a tenant that may have a turn; None when there is none."""
        if not any(may(flow.tenant) for flow in self._turns):
            return None
        while True:
            flow = self._turns[0]
            if may(flow.tenant):
                if flow.credit < 1.0:
                    flow.credit += flow.weight
                if flow.credit >= 1.0:
                    return self._take(flow)
            self._turns.rotate(-1)

    def _take(self, flow: _Flow[_Item]) -> _Item:
        item = next(iter(flow.items))
        flow.credit -= 1.0
        self.remove(flow.tenant, item)
        if flow.items and flow.credit < 1.0:
            self._turns.rotate(-1)
        return item

    def remove(self, tenant: str, item: _Item) -> None:
        """Out of the queue, wherever it stands; fine when it is not there."""
        flow = self._flows.get(tenant)
        if flow is None or item not in flow.items:
            return
        del flow.items[item]
        self._size -= 1
        if not flow.items:
            del self._flows[tenant]
            self._turns.remove(flow)

    def pop_last_of_longest(self, than: str, weight: float) -> _Item | None:
        """The latest item of the tenant whose queue is longest for its weight, when that is longer than the
        one of `than` would be with one item more; None: `than` itself has the longest."""
        longest = max(self._flows.values(), key=lambda flow: len(flow.items) / flow.weight, default=None)
        if longest is None or longest.tenant == than:
            return None
        if len(longest.items) / longest.weight <= (self.waiting(than) + 1) / weight:
            return None
        item = next(reversed(longest.items))
        self.remove(longest.tenant, item)
        return item
