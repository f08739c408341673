"""What tests need besides Python packages is got where it can be, and is never a reason to fail."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1] / "tools" / "needs.sh"
BASE = ("sh", "dirname", "id", "ls", "timeout")
ENGINE = ("podman", "runc", "nft", "ip", "busybox")


def needs(tmp_path: Path, **programs: str) -> subprocess.CompletedProcess[str]:
    """Run a copy, on a machine that has nothing but these programs."""
    script, path = tmp_path / "tools" / "needs.sh", tmp_path / "bin"
    script.parent.mkdir()
    path.mkdir()
    shutil.copy2(SCRIPT, script)
    for name in BASE:
        (path / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    for name, text in programs.items():
        program = path / name.replace("_", "-")
        program.unlink(missing_ok=True)
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    return subprocess.run(
        [script], env={"PATH": str(path), "HOME": str(tmp_path)}, capture_output=True, text=True, check=False
    )


def test_where_nothing_can_be_got_it_says_what_is_missing_and_succeeds(tmp_path: Path) -> None:
    done = needs(tmp_path)
    assert done.returncode == 0
    assert re.search("only root with apt installs it here: chromium .* redis-server", done.stderr)
    assert "pip install uv" in done.stderr


def test_what_is_there_is_not_got_again(tmp_path: Path) -> None:
    there = dict.fromkeys(("chromium", "curl", "jq", "node", "npm", *ENGINE, "redis_server", "uv"), "exit 0")
    done = needs(tmp_path, **there, apt_get=f"echo called > {tmp_path}/called")
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "called").exists()


def test_a_package_that_cannot_be_had_keeps_no_other_away(tmp_path: Path) -> None:
    log = tmp_path / "log"
    apt = f'for last; do :; done; echo "$last" >> {log}; [ "$last" != jq ]'
    there = dict.fromkeys(("chromium", "node", "npm", *ENGINE, "redis_server", "uv"), "exit 0")
    done = needs(tmp_path, **there, id="echo 0", apt_get=apt)
    assert done.returncode == 0
    assert log.read_text().split() == ["-qq", "curl", "jq"]
    assert "jq cannot be installed here" in done.stderr


def test_offline_it_succeeds_and_says_what_could_not_be_got(tmp_path: Path) -> None:
    there = dict.fromkeys(("chromium", "curl", "jq", "node", "npm", *ENGINE, "redis_server"), "exit 0")
    done = needs(tmp_path, **there, uv="exit 2")
    assert done.returncode == 0
    assert "Python 3.12 cannot be installed here" in done.stderr


def test_a_node_that_is_too_old_is_told(tmp_path: Path) -> None:
    there = dict.fromkeys(("chromium", "curl", "jq", "npm", "uv"), "exit 0")
    done = needs(tmp_path, **there, node="echo v18.19.0")
    assert done.returncode == 0
    assert "Node.js v18.19.0 is here, and the coding CLIs need 20 or newer" in done.stderr
