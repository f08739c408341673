"""Wrappers of other people's harnesses stay thin."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
COUNTER = ROOT / "tools" / "plugin_lines.py"


def count(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the counter, or its copy in another tree."""
    script = folder / "tools" / "plugin_lines.py"
    return subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)


def tree(tmp_path: Path, source: str) -> Path:
    """A tree with the counter and one plugin of this source."""
    for folder in ("tools", "plugins/harness_miniswe/orchard_x", "plugins/harness_miniswe/tests"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "tools" / "plugin_lines.py").write_text(COUNTER.read_text())
    (tmp_path / "plugins/harness_miniswe/orchard_x/a.py").write_text(source)
    (tmp_path / "plugins/harness_miniswe/tests/test_a.py").write_text("x = 1\n" * 500)
    return tmp_path


def test_every_wrapper_has_at_most_250_lines_of_its_own() -> None:
    done = count(ROOT)
    assert done.returncode == 0, done.stdout
    assert "harness_miniswe" in done.stdout


def test_blanks_comments_docstrings_and_tests_are_not_counted(tmp_path: Path) -> None:
    source = (
        '"""Doc\n\nstring."""\n\n# comment\nx = """a\nb"""  # counted twice\n\n\ndef f():\n    """Doc."""\n'
    )
    done = count(tree(tmp_path, source + "    return x\n" * 247))
    assert (done.returncode, done.stdout.split()[1]) == (0, "250")


def test_a_line_too_many_fails(tmp_path: Path) -> None:
    done = count(tree(tmp_path, "x = 1\n" * 251))
    assert (done.returncode, "TOO MANY" in done.stdout) == (1, True)
