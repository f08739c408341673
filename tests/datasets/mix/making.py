"""Small sources, written as anyone would write them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from orchard_core.datasets.mix.recipe import MixRecipe
from orchard_core.datasets.store.manifest import Manifest
from orchard_core.datasets.store.reader import open_dataset

TOOLS = '[{"type":"function","function":{"name":"bash","parameters":{"type":"object"}}}]'


def call(name: str = "bash", arguments: str = '{"command":"ls"}') -> dict[str, Any]:
    """A tool call."""
    return {"id": "call-1", "type": "function", "function": {"name": name, "arguments": arguments}}


def talk(say: str, *calls: dict[str, Any], told: str = "a.txt") -> list[dict[str, Any]]:
    """A conversation of one or two answers."""
    return [
        {"role": "user", "content": say},
        {"role": "assistant", "content": "I look.", "tool_calls": list(calls) or [call()]},
        {"role": "tool", "content": told, "tool_call_id": "call-1"},
        {"role": "assistant", "content": "Done."},
    ]


def line(name: str, messages: list[dict[str, Any]] | None = None, tools: str = TOOLS, **facts: Any) -> str:
    """A row of the `hf` format, with what is known of it."""
    known = {
        "schema_version": 1, "id": name, "rollout": name, "harness": "react", "model": "m", "taskset": "set",
        "task": f"task-{name}", "task_text": f"Mend {name}.", "outcome": "completed", "reward": 1.0,
        "token_count": 100, "token_count_exact": True, **facts,
    }  # fmt: skip
    told = talk(f"Mend {name}.") if messages is None else messages
    return json.dumps({"messages": told, "tools": tools, "orchard": json.dumps(known)})


def source(path: Path, lines: Iterable[str]) -> Path:
    """A file of such rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{text}\n" for text in lines))
    return path


def plain_source(path: Path, count: int, **facts: Any) -> Path:
    """A file of so many rows that no filter drops."""
    return source(path, (line(f"{path.stem}-{number}", **facts) for number in range(count)))


def recipe(*sources: Any, **fields: Any) -> MixRecipe:
    """A recipe; a source is a path or its fields."""
    listed = [given if isinstance(given, dict) else {"path": str(given)} for given in sources]
    return MixRecipe.model_validate({"sources": listed, **fields})


def kept(manifest: Manifest) -> dict[str, int]:
    """Rows of each source in the dataset."""
    return {report.name: report.kept for report in manifest.made.sources}


def dropped(manifest: Manifest) -> dict[str, dict[str, int]]:
    """Rows left out, by source and filter."""
    return {report.name: dict(report.dropped) for report in manifest.made.sources}


def ids(root: Path, split: str | None = None) -> list[str]:
    """Ids of a dataset's rows, in order."""
    return [row.id for row in open_dataset(root).rows(split)]


def files(root: Path) -> dict[str, str]:
    """SHA-256 of every file of a dataset; of the manifest, without when it was made."""
    found = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    manifest = json.loads(found["manifest.json"])
    del manifest["created_at"]
    found["manifest.json"] = json.dumps(manifest).encode()
    return {name: sha256(content).hexdigest() for name, content in found.items()}
