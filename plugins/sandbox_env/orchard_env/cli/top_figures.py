"""Figures of an overview as people read them."""

from __future__ import annotations

from orchard_env.types.overview import Overview, TenantRow


class Since:
    """What happened between two looks at the same process."""

    def __init__(self, now: Overview, before: Overview | None) -> None:
        """Without one before, or when the process was started anew since, there are no rates."""
        known = before is not None and now.up_s > before.up_s and now.requests >= before.requests
        self._now = now
        self._before = before if known else None
        self._tenants = {row.tenant: row.execs for row in before.tenants} if known and before else {}
        self._past_s = now.up_s - before.up_s if known and before else 0.0

    @property
    def known(self) -> bool:
        """Whether there are rates."""
        return self._before is not None

    def rate(self, name: str) -> str:
        """Of one sum, such as `12.5/s`; without rates the sum itself."""
        total = getattr(self._now, name)
        if self._before is None:
            return big(total)
        return _per_s((total - getattr(self._before, name)) / self._past_s)

    def tenant_rate(self, row: TenantRow) -> str:
        """Commands a second of one tenant; without rates how many there were."""
        if self._before is None:
            return big(row.execs)
        return f"{max(0, row.execs - self._tenants.get(row.tenant, 0)) / self._past_s:.1f}"

    def mean(self, sums: str, counts: str, unit: str) -> str:
        """What one took lately, or since the start when there was none lately: `0.31 s`, `2.1 ms`."""
        total, number = getattr(self._now, sums), getattr(self._now, counts)
        if self._before is not None and number > getattr(self._before, counts):
            total, number = total - getattr(self._before, sums), number - getattr(self._before, counts)
        if not number:
            return "-"
        return f"{total / number:.2f} s" if unit == "s" else f"{1000 * total / number:.1f} ms"


def _per_s(rate: float) -> str:
    return f"{rate:.0f}/s" if rate >= 100 else f"{rate:.1f}/s"


def big(number: int) -> str:
    """With thousands apart."""
    return f"{number:,}"
