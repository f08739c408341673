"""By what a run knows the Jobs that were made for it, whoever coordinates it now."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Self

from pydantic import ValidationError

from orchard_core import Record


class Crew(Record):
    """Kept in the run directory until its work is done: a run elsewhere of the same path has another."""

    name: str
    """Value of the label, random."""
    namespace: str
    """Where its Jobs are."""

    @classmethod
    def load(cls, run: Path) -> Self | None:
        """The one of an earlier start; None when there was none. Raises OSError."""
        try:
            return cls.model_validate_json(_path(run).read_bytes())
        except (FileNotFoundError, ValidationError):  # half written: nothing had been made for it yet
            return None

    @classmethod
    def new(cls, run: Path, namespace: str) -> Self:
        """Another, kept before anything is made in its name. Raises OSError."""
        crew = cls(name=secrets.token_hex(6), namespace=namespace)
        path = _path(run)
        path.parent.mkdir(exist_ok=True)
        path.write_text(crew.model_dump_json(), encoding="utf-8")
        return crew


def _path(run: Path) -> Path:
    return run / "workers" / "kubernetes.json"
