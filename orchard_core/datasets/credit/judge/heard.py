"""What a judge answered, kept word for word beside the credits.

The questions are not kept: they repeat the trajectory, and the same rollout, settings and template make the
same question again, which its hash proves.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from orchard_core.datasets.credit.judge.contract import Judgement
from orchard_core.rollout.text import excerpt

ANSWERS_NAME = "answers.jsonl"
LONGEST = 1_000_000
"""Of a longer answer, head and tail are kept."""


def note(directory: Path, rollout: str, found: Judgement) -> None:
    """Add a line. Not synced: what counts is in the credit; a torn line is followed by a new one."""
    line = json.dumps(
        {
            "rollout": rollout,
            "prompt_sha256": found.prompt_sha256,
            "answers": [excerpt(answer, LONGEST) for answer in found.answers],
            "error": found.error,
            "usage": found.usage.model_dump(),
            "cost_usd": found.cost_usd,
        }
    )
    path = directory / ANSWERS_NAME
    with path.open("a+b") as stream:
        if stream.seek(0, os.SEEK_END) > 0:
            stream.seek(-1, os.SEEK_END)
            torn = stream.read(1) != b"\n"
        else:
            torn = False
        stream.write(b"\n" * torn + line.encode() + b"\n")
