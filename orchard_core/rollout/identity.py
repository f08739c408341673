"""Names and seeds that a resumed run finds again."""

from __future__ import annotations

import hashlib


def rollout_id(*, taskset: str, task: str, harness: str, model: str, attempt: int) -> str:
    """20 hexadecimal digits that name one attempt within a run."""
    return digest("rollout", taskset, task, harness, model, str(attempt))[:20]


def rollout_seed(run_seed: int, *, task: str, attempt: int) -> int:
    """31 bits. Harness and model are left out, so that runs which differ in them can be paired."""
    return int(digest("seed", str(run_seed), task, str(attempt))[:8], 16) >> 1


def digest(*parts: str) -> str:
    """SHA-256 over parts that cannot run into each other, hexadecimal."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        total.update(f"{len(data)}:".encode())
        total.update(data)
    return total.hexdigest()
