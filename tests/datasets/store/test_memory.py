"""Memory does not grow with the number of rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import random, sys
from pathlib import Path
from orchard_core import DatasetWriter, open_dataset
from orchard_core.datasets.reading import find_source
from orchard_core.datasets.stats import build_stats
from orchard_core.datasets.stats_read import measured
from orchard_core.datasets.verify import Verifier
from tests.datasets.making import make_row
out, count = Path(sys.argv[1]), int(sys.argv[2])
text = "".join(random.Random(0).choices("abcdefgh ", k=100_000))
with DatasetWriter(out) as writer:
    for number in range(count):
        writer.write(make_row(number, messages=f'[{{"role":"user","content":"{number}{text}"}}]'))
    writer.finish()
assert sum(1 for _ in open_dataset(out)) == count
assert build_stats(measured(find_source(out))).total.rows == count
assert sum(1 for _ in Verifier(out, deep=True).rows()) == count
status = Path("/proc/self/status").read_text()  # ru_maxrss starts at the peak of whoever began this
print(int(status.partition("VmHWM:")[2].split()[0]) >> 10)
"""


def peak_mib(out: Path, rows: int) -> int:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(out), str(rows)], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def test_ten_times_the_rows_take_no_more_memory_to_write_read_count_and_verify(tmp_path: Path) -> None:
    few, many = peak_mib(tmp_path / "few", 200), peak_mib(tmp_path / "many", 2_000)
    assert many < few + 60, "2,000 rows are 200 MB"
    assert many < 400
