"""The page: one file, styles inside, no script, nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from orchard_core.evals.clean import clean_line
from orchard_core.evals.html import svg, words
from orchard_core.evals.html.bars import endings
from orchard_core.evals.html.chart import MIDDLE, NARROW, WIDE
from orchard_core.evals.html.differences import ranked
from orchard_core.evals.html.facts import facts
from orchard_core.evals.html.failures import failure_rows
from orchard_core.evals.html.grid import grids
from orchard_core.evals.html.headline import headline
from orchard_core.evals.html.heat import heat_maps, transfer_map
from orchard_core.evals.html.plot import COLOURS, SHAPES, cost_accuracy, costs_known
from orchard_core.evals.html.verdict import Verdict
from orchard_core.evals.html.view import CellView, cell_views, sentence
from orchard_core.evals.matrix_report import MatrixReport

SHEETS = ("tokens.css", "style.css")
"""The colours, which the viewer shares, and the report's own rules."""
LONGEST = 120
"""Characters of any one name or message that the page shows."""


def render(report: MatrixReport, *, pages: Mapping[str, str] | None = None, drawn: bool = True) -> str:
    """The whole document. `pages` gives the addresses of rollouts' own pages by anchor; without `drawn` the
    tables stand alone, which is what is left where the extra `report` is not installed."""
    cells = cell_views(report, pages or {})
    return _environment().get_template("report.html").render(
        report=report,
        title=sentence(report),
        headline=headline(report, cells),
        cells=cells,
        heats=heat_maps(report, cells),
        transfer=transfer_map(report.transfer),
        charts=_charts(cells) if drawn else None,
        in_dollars=costs_known(cells),
        failures=failure_rows(cells),
        grids=grids(cells),
        facts=facts(cells),
        seen=[verdict for verdict in Verdict if any(view.verdicts.get(verdict) for view in cells)],
        tasksets=len({view.cell.key.taskset for view in cells}),
        differences=ranked(report.differences, cells),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Charts:
    """Each chart three times: for a desktop, a tablet and a telephone."""

    cost: Sequence[Markup]
    """Cost and accuracy; empty: nothing to draw it from."""
    endings: Sequence[Markup]
    """How rollouts ended; empty likewise."""


def _charts(cells: Sequence[CellView]) -> Charts:
    widths = (WIDE, MIDDLE, NARROW)
    costs = [cost_accuracy(cells, width=width) for width in widths]
    ends = [endings(cells, width=width) for width in widths]
    cost_label, ends_label = "pass@1 by the price of a rollout", "How rollouts ended, a bar a cell"
    return Charts(
        cost=[svg.draw(spec, label=cost_label) for spec in costs if spec],
        endings=[svg.draw(spec, label=ends_label) for spec in ends if spec],
    )


@cache
def _environment() -> Environment:
    """Templates that escape everything, and cut every string short after taking control codes out."""
    made = Environment(
        loader=PackageLoader("orchard_core.evals.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    folder = files("orchard_core.evals.html")
    style = "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in SHEETS)
    made.globals |= {
        "style": Markup(style),  # noqa: S704 - our own file
        "style_hash": base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        "w": words,
        "zip": zip,
        "Verdict": Verdict,
        "colours": COLOURS,
        "shapes": len(SHAPES),
        "install": svg.INSTALL,
        "version": version("orchard-core"),
        "now": lambda: datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }
    return made


def _shown(value: object) -> object:
    """Markup of ours as it is; any other string on one line, bounded, without control codes."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return clean_line(value, LONGEST)


def template(name: str, **values: object) -> str:
    """Another page of the same look."""
    return _environment().get_template(name).render(**values)
