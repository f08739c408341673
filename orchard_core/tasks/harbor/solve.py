"""A Harbor task's solution as steps that an oracle plays."""

from __future__ import annotations

import base64
import io
import re
import shlex
import tarfile
from pathlib import Path

from orchard_core.errors import TaskInvalid
from orchard_core.tasks.harbor.read import HarborTask
from orchard_core.tasks.harbor.scan import read_text
from orchard_core.tasks.shell import Unsure, pieces
from orchard_core.tasks.solution import split_script
from orchard_core.types.task import Solution, SolutionStep

PLACE = "/solution"
"""Where a solution that needs its own directory is put."""
BUNDLE_LIMIT = 1 << 20
"""Bytes of a solution directory that may travel inside a command."""

_ITS_NAME = re.compile(r"\$\{?(?:0|BASH_SOURCE)\b")
_ITS_PLACE = re.compile(r"/(?:solution|oracle)\b")
_SHELL = re.compile(r"^#!\s*\S*?(?:/env\s+)?(?:\S*/)?(?:ba|da|a)?sh\b")


def solution_of(task: HarborTask) -> Solution | None:
    """The steps of `[[orchard.steps]]`, else of solution/solve.sh, else None. Raises TaskInvalid."""
    orchard = task.toml.orchard
    if orchard.steps:
        steps = tuple(SolutionStep(command=step.command, thought=step.thought) for step in orchard.steps)
        return Solution(steps=steps, answer=orchard.answer)
    script = task.root / "solution" / "solve.sh"
    if not script.is_file():
        return None
    exports = "".join(f"export {key}={shlex.quote(value)}\n" for key, value in task.solution_env.items())
    steps = _script_steps(script)
    if exports:
        steps = tuple(step.model_copy(update={"command": exports + step.command}) for step in steps)
    return Solution(steps=steps, answer=orchard.answer)


def _script_steps(script: Path) -> tuple[SolutionStep, ...]:
    text = read_text(script)[0].replace("\r\n", "\n")
    alone = all(path == script for path in script.parent.rglob("*"))
    first = text.split("\n", 1)[0]
    in_shell = not first.startswith("#!") or _SHELL.match(first)
    if alone and in_shell and not _needs_its_place(text):
        return split_script(text)
    return _bundled(script.parent, text, first if first.startswith("#!") else "#!/bin/sh")


def _needs_its_place(script: str) -> bool:
    try:
        live = "".join(piece.live for piece in pieces(script))
    except Unsure:
        live = script
    return bool(_ITS_NAME.search(live) or _ITS_PLACE.search(script))


def _bundled(directory: Path, script: str, shebang: str) -> tuple[SolutionStep, ...]:
    """Unpack the whole solution directory inside, then run its script there."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        archive.add(directory, ".")
        entry = tarfile.TarInfo("./solve.sh")
        entry.size, entry.mode = len(script.encode()), 0o755
        archive.addfile(entry, io.BytesIO(script.encode()))
    packed = base64.encodebytes(buffer.getvalue()).decode()
    if len(packed) > BUNDLE_LIMIT:
        raise TaskInvalid(f"{directory} is too large to be played as commands ({len(packed)} bytes)")
    unpack = f"mkdir -p {PLACE} && base64 -d <<'END' | tar xzf - -C {PLACE} --no-same-owner\n{packed}END\n"
    run = f"{shebang[2:].strip()} {PLACE}/solve.sh"
    return (
        SolutionStep(command=unpack, thought="I put the files of the solution in place."),
        SolutionStep(command=run, thought="Now I run it."),
    )
