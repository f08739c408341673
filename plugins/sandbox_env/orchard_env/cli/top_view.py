"""An overview on a terminal: fitted to its width and height, with rates since the look before.

Whatever came over the network, names above all, may be hostile: it is cleaned before it is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from orchard_core import clean_line
from orchard_env.cli.top_figures import Since, big
from orchard_env.figures import dollars, span
from orchard_env.types.overview import Overview, SandboxRow, TenantRow

_WIDE, _WIDEST = 100, 130
_NAME_MAX = 40


class Screen:
    """What is shown now."""

    def __init__(self, live: Live, url: str) -> None:
        self._live = live
        self._url = url
        self._before: Overview | None = None
        self._view: Overview | None = None

    def show(self, view: Overview) -> None:
        """The newest state."""
        self._before, self._view = self._view, view
        self._draw("")

    def lost(self, why: str) -> None:
        """The service did not answer: the last state stays."""
        self._draw(f"no answer: {clean_line(why)}")

    def _draw(self, trouble: str) -> None:
        assert self._view is not None
        console = self._live.console
        since = Since(self._view, self._before)
        drawn = drawing(
            self._view, since, self._url, width=console.width, height=console.height, trouble=trouble
        )
        self._live.update(drawn, refresh=True)


@contextmanager
def live_screen(url: str) -> Iterator[Screen]:
    """A whole terminal, given back at the end."""
    with Live(console=Console(), screen=True, auto_refresh=False) as live:
        yield Screen(live, url)


def print_view(view: Overview, url: str) -> None:
    """Once, as lines; as wide as they need to be where nobody's terminal bounds them."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=160)
    since = Since(view, None)
    console.print(drawing(view, since, url, width=console.width, height=10_000, trouble=""), soft_wrap=False)


def drawing(view: Overview, since: Since, url: str, *, width: int, height: int, trouble: str) -> Group:
    """Everything, at most `height` lines."""
    head = [_title(view, url), *_sums(view, since, width), *_troubles(view, trouble)]
    tail = [_queues(view), _failures(view)]
    lines = [text for text in (*head, *tail) if text.plain]
    room = max(4, height - len(lines) - 6)
    tenants = view.tenants[: max(2, min(len(view.tenants), room // 2))]
    boxes = view.sandboxes[: max(1, room - len(tenants))]
    above = (text for text in head if text.plain)
    between = [text for text in tail if text.plain]
    apart = [*between, Text()] if between else []
    table = _tenants(tenants, view, since, width)
    return Group(*above, Text(), table, Text(), *apart, _sandboxes(boxes, width))


def _title(view: Overview, url: str) -> Text:
    what = f"{clean_line(view.version)}, provider {clean_line(view.provider)}, up {span(view.up_s)}"
    state = Text("  ending", style="bold red") if view.draining else Text()
    return Text.assemble(("Orchard Env ", "bold"), clean_line(url), "  ", (what, "dim"), state, no_wrap=True)


def _sums(view: Overview, since: Since, width: int) -> list[Text]:
    ready, pending, failed = (
        sum(getattr(row, name) for row in view.tenants) for name in ("ready", "pending", "failed")
    )
    parts = [
        f"ready {big(ready)}",
        f"pending {big(pending)}",
        f"failed {big(failed)}",
        f"in flight {big(view.in_flight)}",
        f"requests {since.rate('requests')}",
        f"commands {since.rate('execs')}",
        f"creates {since.rate('created')}",
        f"create {since.mean('create_s', 'created', 's')}",
        f"overhead {since.mean('overhead_s', 'timed', 'ms')}",
        f"cost {dollars(sum(row.usd for row in view.tenants))}",
    ]
    if view.pool_hits or view.pool_misses:
        parts.append(f"pool hits {view.pool_hits / (view.pool_hits + view.pool_misses):.0%}")
    return [Text(line) for line in _folded(parts, width)]


def _folded(parts: list[str], width: int) -> list[str]:
    lines = [""]
    for part in parts:
        longer = f"{lines[-1]}   {part}" if lines[-1] else part
        if len(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(part)
    return lines


def _troubles(view: Overview, trouble: str) -> list[Text]:
    told = [clean_line(text) for text in view.conditions] + ([trouble] if trouble else [])
    return [Text(text, style="bold red", no_wrap=True, overflow="ellipsis") for text in told]


def _tenants(rows: tuple[TenantRow, ...], view: Overview, since: Since, width: int) -> Table:
    heads = ["TENANT", "READY", "PEND", "FAIL", "VCPU", "GIB", "CMD/S" if since.known else "CMDS"]
    if width >= _WIDE:
        heads += ["VCPU-H", "USED", "GIB-H"]
    grid = _grid([*heads, "COST"], names=1)
    for row in rows:
        cells = [big(row.ready), big(row.pending), big(row.failed), f"{row.cpu:g}", f"{row.memory_gib:.4g}",
                 since.tenant_rate(row)]  # fmt: skip
        if width >= _WIDE:
            cells += [f"{row.cpu_hours:,.2f}", f"{row.used_cpu_hours:,.2f}", f"{row.gib_hours:,.2f}"]
        grid.add_row(_name(row.tenant), *(Text(cell) for cell in cells), Text(dollars(row.usd)))
    if len(rows) < len(view.tenants):
        grid.add_row(Text(f"... {len(view.tenants) - len(rows)} more", style="dim"))
    return grid


def _sandboxes(rows: tuple[SandboxRow, ...], width: int) -> Table:
    heads = ["SANDBOX", "TENANT", "STATE", *(["IMAGE"] if width >= _WIDE else [])]
    grid = _grid([*heads, "VCPU", "GIB", "AGE"], names=len(heads))
    for row in rows:
        state = Text(clean_line(row.fault or row.status), style="red" if row.fault else "")
        image = [_name(row.image, width // 4)] if width >= _WIDE else []
        size = (Text(f"{row.cpu:g}"), Text(f"{row.memory_gib:.4g}"), Text(span(row.age_s)))
        grid.add_row(_name(row.id), _name(row.tenant, 20), state, *image, *size)
    return grid


def _grid(heads: list[str], *, names: int) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for number, _ in enumerate(heads):
        justify = "left" if number < names else "right"
        grid.add_column(justify=justify, no_wrap=True, overflow="ellipsis")  # type: ignore[arg-type]
    grid.add_row(*(Text(head, style="bold dim") for head in heads))
    return grid


def _name(text: str, most: int = _NAME_MAX) -> Text:
    return Text(clean_line(text, most) or "-")


def _queues(view: Overview) -> Text:
    told = [f"{clean_line(row.work)} {row.running} at work, {row.waiting} wait, {row.refused} sent away"
            for row in view.queues]  # fmt: skip
    return Text("; ".join(told), no_wrap=True, overflow="ellipsis")


def _failures(view: Overview) -> Text:
    told = [f"{clean_line(row.reason)} {row.count}" for row in view.failures]
    return Text(
        "failures: " + ", ".join(told) if told else "", style="yellow", no_wrap=True, overflow="ellipsis"
    )
