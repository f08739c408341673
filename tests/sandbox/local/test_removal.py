"""Trees are removed whole, also while a program that is about to die still writes into them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from orchard_core.sandbox.local.removal import remove_tree

_WRITER = """
import itertools, os, sys
os.chdir(sys.argv[1])
print("in", flush=True)
for n in itertools.count():
    try:
        os.mkdir(str(n % 7))
    except FileExistsError:
        continue
    except FileNotFoundError:
        break
"""


def test_a_tree_that_a_program_still_writes_into_is_gone_in_the_end(tmp_path: Path) -> None:
    """The writer ends by itself once its directory is unlinked, as a copy does whose target is taken away."""
    for round_ in range(10):
        tree = tmp_path / f"tree-{round_}"
        tree.mkdir()
        with subprocess.Popen([sys.executable, "-c", _WRITER, str(tree)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"in\n"
            assert remove_tree(tree)
        assert not tree.exists()


def test_what_is_not_there_is_gone(tmp_path: Path) -> None:
    assert remove_tree(tmp_path / "none")


def test_closed_directories_and_links_are_removed_and_what_links_name_is_kept(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("stays")
    tree = tmp_path / "tree"
    (tree / "closed/inner").mkdir(parents=True)
    (tree / "closed/link").symlink_to(kept)
    (tree / "closed/inner").chmod(0)
    (tree / "closed").chmod(0o500)
    assert remove_tree(tree)
    assert kept.read_text() == "stays"
