"""Writing task directories, for generators and converters."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFiles:
    """Everything of one task directory."""

    name: str
    """Name of the directory, and so the task's id."""
    instruction: str
    """instruction.md."""
    toml: Mapping[str, JsonValue]
    """task.toml: tables are mappings, arrays of tables are lists of mappings."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Other files by path relative to the directory; `*.sh` are made executable."""
    trees: Mapping[str, Path] = field(default_factory=dict)
    """Directories of this machine that are copied, by their place relative to the directory."""


def write_task(parent: Path, task: TaskFiles) -> Path:
    """Write one task directory under `parent`; gives its path."""
    root = parent / task.name
    root.mkdir(parents=True)
    (root / "instruction.md").write_text(task.instruction, encoding="utf-8")
    (root / "task.toml").write_text(to_toml(task.toml), encoding="utf-8")
    for place, source in task.trees.items():
        shutil.copytree(source, root / place, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name, content in task.files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o755 if name.endswith(".sh") else 0o644)
    return root


def to_toml(table: Mapping[str, JsonValue], prefix: str = "") -> str:
    """A table as TOML: plain keys first, then tables, then arrays of tables. None values are left out."""
    plain, nested = [], []
    for key, value in table.items():
        name = f"{prefix}.{_string(key)}" if prefix else _string(key)
        if isinstance(value, Mapping):
            nested.append(f"\n[{name}]\n{to_toml(value, name)}")
        elif isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            nested += [f"\n[[{name}]]\n{to_toml(item, name)}" for item in value if isinstance(item, Mapping)]
        elif value is not None:
            plain.append(f"{_string(key)} = {_value(value)}\n")
    return "".join(plain + nested)


def _value(value: JsonValue) -> str:
    if isinstance(value, str):
        return _string(value, bare=False)
    if isinstance(value, list):
        return f"[{', '.join(_value(item) for item in value)}]"
    if isinstance(value, dict):
        inner = ", ".join(f"{_string(key)} = {_value(item)}" for key, item in value.items())
        return f"{{ {inner} }}"
    return json.dumps(value)


def _string(text: str, *, bare: bool = True) -> str:
    if bare and text.isascii() and text.replace("-", "").replace("_", "").isalnum():
        return text
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
