"""What an external harness gives back: a JSON file, and files to keep."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from orchard_core.errors import HarnessCrashed, HarnessError
from orchard_core.harness.external.environment import Place
from orchard_core.harness.external.supervised import Ended
from orchard_core.types.base import Record
from orchard_core.types.harness import HarnessResult, StopReason

_RESULT_MAX = 16 << 20
_ARTIFACTS_MAX = 64 << 20
_ARTIFACT_COUNT = 10_000
_WORDS = 2000
_PAGE = "see docs/how-to/harness-in-any-language.md"


class ResultFile(Record):
    """The JSON file that ORCHARD_RESULT names."""

    stop: StopReason
    """Why the program stopped."""
    answer: str | None = None
    """The final answer, when there is one."""
    turns: int = 0
    """Model answers acted upon."""
    malformed_calls: int = 0
    """Tool calls that could not be understood."""
    message: str = ""
    """For people: details of the stop."""


def read_result(name: str, place: Place, ended: Ended, secrets: Sequence[str]) -> HarnessResult:
    """The result, with no secret in it. Raises HarnessError when there is none to be had."""
    said = _redacted(ended.stderr.strip() or ended.stdout.strip(), secrets)
    tail = said.decode("utf-8", "replace")[-_WORDS:]
    words = f"; its last words: {tail}" if tail else ", without a word"
    if ended.exit_code:
        raise HarnessCrashed(f"{name} ended with exit code {ended.exit_code}{words}", hint=_PAGE)
    try:
        data = _read(place.result, _RESULT_MAX)
    except OSError as error:
        raise HarnessCrashed(
            f"{name} ended with exit code 0 and left no result ({error.strerror}){words}", hint=_PAGE
        ) from error
    try:
        found = ResultFile.model_validate_json(_redacted(data, secrets))
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"]) or "the file"
        raise HarnessError(f"the result of {name} is wrong: {where}: {problem['msg']}", hint=_PAGE) from error
    return HarnessResult(**dict(found), artifacts=_artifacts(place.artifacts, secrets))


def _read(path: Path, limit: int) -> bytes:
    """A regular file of at most `limit` bytes; a link is not followed. Raises OSError."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise OSError(0, "no regular file")
        if state.st_size > limit:
            raise OSError(0, f"{state.st_size} bytes; {limit} are taken")
        return file.read(limit)


def _redacted(data: bytes, secrets: Sequence[str]) -> bytes:
    for secret in secrets:
        data = data.replace(secret.encode(), b"[redacted]")
    return data


def _artifacts(directory: Path, secrets: Sequence[str]) -> Mapping[str, bytes]:
    """Its files by their path below it, as many as fit."""
    kept: dict[str, bytes] = {}
    left = _ARTIFACTS_MAX
    for path in _files(directory):
        try:
            data = _read(path, left)
        except OSError:
            continue
        kept[path.relative_to(directory).as_posix()] = _redacted(data, secrets)
        left -= len(data)
        if len(kept) >= _ARTIFACT_COUNT:
            break
    return kept


def _files(directory: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(directory):
        folders.sort()
        yield from (Path(folder, name) for name in sorted(names) if name.isprintable())
