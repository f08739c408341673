"""Seconds and bytes of the plainest report: the same rows as one HTML table, and a Plotly heat map.

pandas_table.py JOURNALS FOLDER     prints TAKEN [seconds, bytes of the table, bytes of the chart's page]

Runs in the environment of the peers. JOURNALS is a text file of journal paths, one a line.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

STARTED = time.perf_counter()

import pandas as pd  # type: ignore[import-untyped] # noqa: E402
import plotly.express as px  # type: ignore[import-not-found] # noqa: E402

COLUMNS = ["id", "task", "attempt", "outcome", "attribution", "score", "turns", "cost_usd", "error"]


def main(journals: Path, folder: Path) -> list[float]:
    lines = [
        {**json.loads(line), "cell": path}
        for path in journals.read_text().splitlines()
        for line in Path(path).read_text().splitlines()
    ]
    rows = pd.DataFrame([line for line in lines if line.get("type") == "finished"])
    rates = rows.assign(passed=rows.score >= 1).groupby("cell").passed.mean().to_frame()
    table, chart = folder / "table.html", folder / "chart.html"
    table.write_text(rates.to_html() + rows[COLUMNS].to_html())
    px.imshow(rates.to_numpy()).write_html(chart, include_plotlyjs=True)
    return [time.perf_counter() - STARTED, table.stat().st_size, chart.stat().st_size]


if __name__ == "__main__":
    print("\nTAKEN " + json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2]))))
