"""`${NAME}` and `${NAME:-default}` in a task's environment tables.

A task file is not ours, so it reads only those variables of this process that the user named.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def resolve(env: Mapping[str, str], allowed: Collection[str], where: str) -> tuple[dict[str, str], list[str]]:
    """The table with its references filled, and a remark for each one that was refused or unset."""
    remarks: list[str] = []

    def fill(match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        if name in allowed and name in os.environ:
            return os.environ[name]
        if default is None:
            why = "is not set" if name in allowed else "is not in pass_env"
            remarks.append(f"{where} asks for ${{{name}}}, which {why}; it stays empty")
        return default or ""

    return {key: _REFERENCE.sub(fill, value) for key, value in env.items()}, remarks
