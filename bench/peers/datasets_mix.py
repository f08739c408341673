"""The same mix through `datasets`: load, filter, deduplicate, interleave, to Parquet. Prints a JSON line.

python datasets_mix.py VARIANT OUT FILE...      VARIANT: map (in memory-mapped tables) or stream
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import datasets  # type: ignore[import-untyped]
import orjson
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

MAX_TOKENS = 65_536
FAILED = {"harness_failed", "model_failed", "sandbox_failed", "task_invalid", "cancelled"}
SAYINGS = ("There is no tool '",)
PROCESSES = 2


def keep(
    messages: list[list[dict[str, Any]]], tools: list[str], outcome: list[str], tokens: list[int]
) -> list[bool]:
    """A batch through the published filters."""
    return [
        failed not in FAILED and count <= MAX_TOKENS and sound(told, known)
        for told, known, failed, count in zip(messages, tools, outcome, tokens, strict=True)
    ]


def sound(messages: list[dict[str, Any]], tools: str) -> bool:
    names = {tool["function"]["name"] for tool in orjson.loads(tools)}
    for message in messages:
        if message["role"] != "assistant":
            if (message["content"] or "").startswith(SAYINGS):
                return False
            continue
        for call in message["tool_calls"] or ():
            if call["function"]["name"] not in names:
                return False
            try:
                if not isinstance(orjson.loads(call["function"]["arguments"] or "{}"), dict):
                    return False
            except ValueError:
                return False
    return True


def digests(messages: list[list[dict[str, Any]]], tools: list[str]) -> dict[str, list[str]]:
    """A column to find equal rows by."""
    return {
        "digest": [
            hashlib.sha256(orjson.dumps(told) + known.encode()).hexdigest()
            for told, known in zip(messages, tools, strict=True)
        ]
    }


class Unseen:
    """Whether a row is the first with its digest; for one process."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def __call__(self, digest: list[str]) -> list[bool]:
        found = []
        for each in digest:
            found.append(each not in self._seen)
            self._seen.add(each)
        return found


def mapped(files: list[str], out: Path) -> int:
    datasets.disable_progress_bars()
    unseen, parts = Unseen(), []
    for file in files:
        part = datasets.load_dataset("json", data_files=file, split="train", cache_dir=str(out / "cache"))
        part = part.filter(
            keep, batched=True, batch_size=64, num_proc=PROCESSES,
            input_columns=["messages", "tools", "outcome", "token_count"],
        )  # fmt: skip
        part = part.map(
            digests, batched=True, batch_size=64, num_proc=PROCESSES, input_columns=["messages", "tools"]
        )
        parts.append(part.filter(unseen, batched=True, input_columns=["digest"]))
    mixed = interleaved(parts)
    mixed.to_parquet(out / "train.parquet", batch_size=256)
    names(out, mixed["id"])
    return len(mixed)


def streamed(files: list[str], out: Path) -> int:
    parts = []
    for file in files:
        part = datasets.load_dataset("json", data_files=file, split="train", streaming=True)
        part = part.filter(
            keep, batched=True, batch_size=64, input_columns=["messages", "tools", "outcome", "token_count"]
        )
        parts.append(part.map(digests, batched=True, batch_size=64, input_columns=["messages", "tools"]))
    unseen, ids, writer = Unseen(), [], None
    for table in interleaved(parts).with_format("arrow").iter(batch_size=256):
        fresh = table.filter(pa.array(unseen(table["digest"].to_pylist())))
        writer = writer or pq.ParquetWriter(out / "train.parquet", fresh.schema)
        writer.write_table(fresh)  # its own to_parquet holds all of it in memory
        ids += fresh["id"].to_pylist()
    if writer is not None:
        writer.close()
    names(out, ids)
    return len(ids)


def interleaved(parts: list[Any]) -> Any:
    shares = [1 / len(parts)] * len(parts)
    return datasets.interleave_datasets(
        parts, probabilities=shares, seed=0, stopping_strategy="all_exhausted_without_replacement"
    )


def names(out: Path, ids: Any) -> None:
    (out / "ids.txt").write_text("\n".join(sorted(ids)))


def main() -> None:
    variant, out, *files = sys.argv[1:]
    Path(out).mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    rows = {"map": mapped, "stream": streamed}[variant](files, Path(out))
    print(json.dumps({"seconds": time.perf_counter() - began, "rows": rows}))


if __name__ == "__main__":
    main()
