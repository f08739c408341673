"""What a program's events told of its run, as a result."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from orchard_core.errors import HarnessCrashed
from orchard_core.harness.inside.program import ProgramEnd
from orchard_core.harness.inside.reported import reported_stop
from orchard_core.types.harness import HarnessResult, StopReason


class Told:
    """Written into by whoever reads a program's output."""

    def __init__(self) -> None:
        self.turns = 0
        """Model answers."""
        self.answer: str | None = None
        """The newest words of the model."""
        self.finished = False
        """The program says that it ended as it should."""
        self.stop: StopReason | None = None
        """Why it stopped, when it was neither the end of its work nor an error."""
        self.error = ""
        """The error that it reports of its model; empty again when it went on."""
        self.ids: set[str] = set()
        """Of answers that come in pieces, to count each once."""

    def result(self, end: ProgramEnd) -> HarnessResult:
        """What to report of a program that ended so. Raises HarnessError for one that failed by itself."""
        if self.stop is not None:
            return HarnessResult(stop=self.stop, answer=self.answer, turns=self.turns)
        if self.error:
            return HarnessResult(stop=reported_stop(self.error), turns=self.turns, message=self.error)
        if fault := end.fault():
            raise fault
        if not self.finished and not end.torn:
            raise HarnessCrashed(f"{end.program} ended without saying how its run went: {end.last_words}")
        return HarnessResult(stop=StopReason.ANSWERED, answer=self.answer, turns=self.turns)


def json_at(value: object, *path: str) -> JsonValue:
    """What lies at a path of nested JSON objects; None when it does not."""
    found: JsonValue = value  # type: ignore[assignment]  # JSON came in
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def json_words(value: object, *path: str) -> str:
    """The text at a path: a string, or the joined `text` of a list of parts; else empty."""
    found = json_at(value, *path)
    if isinstance(found, list):
        return "".join(json_words(part, "text") for part in found)
    return found if isinstance(found, str) else ""
