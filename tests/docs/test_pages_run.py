"""Every command and example of README and docs works, in the order a reader meets them.

A block that needs a network, a key or a server says so in its first line, `# needs: ...`; of those, each
`orchard run` line is checked with --dry-run, and each `make` line with `make -n`.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli import forked

from .pages import PAGES, ROOT, FencedBlock, fenced, page_id

RUNNABLE = {"bash", "python"}
SHOWN_ONLY = {"", "text", "toml", "yaml", "json", "markdown"}
COMMAND = re.compile(r"^(\$ |orchard |pip |uv |make |python3? |curl )", re.MULTILINE)


def reader_environment(where: Path) -> dict[str, str]:
    """A reader's shell in an activated environment; what pip installs goes beside it, not into it."""
    kept = {name: os.environ[name] for name in ("LANG", "TMPDIR", "USER") if name in os.environ}
    site = where / ".site"
    return kept | {
        "HOME": str(where / ".home"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": f"{site}:{ROOT}",
        "PIP_TARGET": str(site),
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


@pytest.fixture
def groups() -> Iterator[list[int]]:
    """Process groups of the blocks; what a page leaves in the background ends with its case."""
    begun: list[int] = []
    yield begun
    for number, grace_s in ((signal.SIGTERM, 10.0), (signal.SIGKILL, 0.0)):
        for group in begun:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, number)
        until = time.monotonic() + grace_s
        while time.monotonic() < until and any(map(stands, begun)):
            time.sleep(0.1)


def stands(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def run_block(block: FencedBlock, where: Path, groups: list[int]) -> tuple[int, str]:
    """The exit code of a block, and what it said."""
    argv = ["bash", "-euo", "pipefail"] if block.language == "bash" else [sys.executable, "-"]
    process = subprocess.Popen(
        argv, cwd=where, env=reader_environment(where), text=True, start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    groups.append(process.pid)
    said, _ = process.communicate(block.body, timeout=300)
    return process.returncode, said


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_the_page_works_from_top_to_bottom(page: Path, tmp_path: Path, groups: list[int]) -> None:
    (tmp_path / ".home").mkdir()
    for block in fenced(page):
        where = f"{page_id(page)}:{block.line}"
        if block.file:
            target = tmp_path / block.file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.body, encoding="utf-8")
        elif block.language in RUNNABLE and not block.needs:
            code, said = run_block(block, tmp_path, groups)
            assert code == 0, f"{where} exited {code}:\n{said}"


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_block_says_what_it_is(page: Path) -> None:
    for block in fenced(page):
        assert block.language in RUNNABLE | SHOWN_ONLY, f"{page_id(page)}:{block.line}: {block.language!r}"
        assert not (block.needs and block.language not in RUNNABLE)
        if block.language in {"", "text"}:
            assert not COMMAND.search(block.body), f"{page_id(page)}:{block.line}: commands want ```bash"


NEEDY = [(page, block) for page in PAGES for block in fenced(page) if block.needs]


@pytest.mark.parametrize(
    ("page", "block"), NEEDY, ids=[f"{page_id(page)}:{block.line}" for page, block in NEEDY]
)
def test_a_block_that_needs_more_is_checked_as_far_as_it_can_be(
    page: Path, block: FencedBlock, tmp_path: Path
) -> None:
    (tmp_path / ".home").mkdir()
    keys = {"OPENAI_API_KEY", *re.findall(r"[A-Z_]+_API_KEY", block.needs or "")}
    environment = reader_environment(tmp_path) | dict.fromkeys(keys, "sk-test")
    if "zeroclaw binary" in (block.needs or ""):
        environment["PATH"] += f":{ROOT / 'plugins/harness_zeroclaw/tests/standin'}"
    for line in block.body.splitlines():
        words = shlex.split(line, comments=True)
        if words[:2] == ["orchard", "run"]:
            # An engine is asked what it can do even by a dry run; the recipe is resolved without one.
            checked = [
                *words[1:],
                "--print-config" if "Docker or Podman" in (block.needs or "") else "--dry-run",
            ]
            done = forked.run(checked, cwd=tmp_path, environment=environment, timeout_s=300)
        elif words[:1] == ["make"]:
            checked = ["make", "-n", "-C", str(ROOT), *words[1:]]
            done = subprocess.run(
                checked, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
            )
        else:
            continue
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{page_id(page)} links to {target}"
        if anchor:
            heads = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", head).strip().lower().replace(" ", "-") for head in heads}
            assert anchor in slugs, f"{page_id(page)} links to {target}#{anchor}"
