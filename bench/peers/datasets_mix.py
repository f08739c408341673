"""The same mix through `datasets`: load, filter, deduplicate, interleave, to Parquet. Prints a JSON line.

python datasets_mix.py VARIANT OUT FILE...

VARIANT: `map`, as its documentation shows it: a map that adds flags to each row, a filter for each of them;
`fused`, the least work that we found: one batched map to flags alone, and a `select` of what they leave;
`stream`, all of it streamed.
"""

from __future__ import annotations

import hashlib
import json
import operator
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets  # type: ignore[import-untyped]
import orjson
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

MAX_TOKENS = 65_536
FAILED = {"harness_failed", "model_failed", "sandbox_failed", "task_invalid", "cancelled"}
SAYINGS = ("There is no tool '",)
FLAGS = ("failed", "over_long", "undefined", "unparsable")
PROCESSES = 2


LOOKED_AT = ["messages", "tools", "outcome", "token_count"]


def facts(row: dict[str, Any]) -> dict[str, Any]:
    """What the filters ask of a row."""
    names = {tool["function"]["name"] for tool in orjson.loads(row["tools"])}
    return {
        "failed": row["outcome"] in FAILED,
        "over_long": row["token_count"] > MAX_TOKENS,
        "undefined": any(call["name"] not in names for call in called(row["messages"])),
        "unparsable": not all(map(acted_on, row["messages"])),
        "digest": digest(row["messages"], row["tools"]),
    }


def called(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for message in messages:
        for call in message.get("tool_calls") or ():
            yield call["function"]


def acted_on(message: dict[str, Any]) -> bool:
    """Whether nothing says that an answer could not be acted on."""
    if message["role"] != "assistant":
        return not (message["content"] or "").startswith(SAYINGS)
    return all(is_object(call["function"]["arguments"]) for call in message.get("tool_calls") or ())


def is_object(arguments: str | None) -> bool:
    try:
        return isinstance(orjson.loads(arguments or "{}"), dict)
    except ValueError:
        return False


def digest(messages: list[dict[str, Any]], tools: str) -> str:
    """To find equal rows by."""
    return hashlib.sha256(orjson.dumps(messages) + tools.encode()).hexdigest()


class Unseen:
    """Whether a row is the first with its digest; for one process."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def __call__(self, digest: str) -> bool:
        fresh = digest not in self._seen
        self._seen.add(digest)
        return fresh


def loaded(file: str, out: Path) -> Any:
    return datasets.load_dataset("json", data_files=file, split="train", cache_dir=str(out / "cache"))


def mapped(files: list[str], out: Path) -> int:
    unseen, parts = Unseen(), []
    for file in files:
        part = loaded(file, out).map(facts, num_proc=PROCESSES)
        for flag in FLAGS:
            part = part.filter(operator.not_, input_columns=flag)
        parts.append(part.filter(unseen, input_columns="digest").remove_columns([*FLAGS, "digest"]))
    return written(interleaved(parts), out)


def fused(files: list[str], out: Path) -> int:
    unseen, parts = Unseen(), []
    for file in files:
        part = loaded(file, out)
        told = part.map(
            judged, batched=True, batch_size=64, num_proc=PROCESSES, input_columns=LOOKED_AT,
            remove_columns=part.column_names,
        )  # fmt: skip
        kept = [
            place
            for place, (sound, digest) in enumerate(zip(told["sound"], told["digest"], strict=True))
            if sound and unseen(digest)
        ]
        parts.append(part.select(kept))
    return written(interleaved(parts), out)


def judged(
    messages: list[list[dict[str, Any]]], tools: list[str], outcome: list[str], tokens: list[int]
) -> dict[str, list[Any]]:
    """Of a batch, all filters at once, and digests."""
    sound = []
    for told, known, ended, count in zip(messages, tools, outcome, tokens, strict=True):
        sound.append(ended not in FAILED and count <= MAX_TOKENS and in_order(told, known))
    return {"sound": sound, "digest": list(map(digest, messages, tools))}


def in_order(messages: list[dict[str, Any]], tools: str) -> bool:
    names = {tool["function"]["name"] for tool in orjson.loads(tools)}
    return all(call["name"] in names for call in called(messages)) and all(map(acted_on, messages))


def written(mixed: Any, out: Path) -> int:
    mixed.to_parquet(out / "train.parquet", batch_size=256)
    names(out, mixed["id"])
    return len(mixed)


def streamed(files: list[str], out: Path) -> int:
    parts = []
    for file in files:
        part = datasets.load_dataset("json", data_files=file, split="train", streaming=True)
        part = part.map(judged, batched=True, batch_size=64, input_columns=LOOKED_AT)
        parts.append(part.filter(bool, input_columns="sound"))
    unseen, ids, writer = Unseen(), [], None
    for table in interleaved(parts).with_format("arrow").iter(batch_size=256):
        fresh = table.filter(pa.array(list(map(unseen, table["digest"].to_pylist()))))
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
    datasets.disable_progress_bars()
    rows = {"map": mapped, "fused": fused, "stream": streamed}[variant](files, Path(out))
    print(json.dumps({"seconds": time.perf_counter() - began, "rows": rows}))


if __name__ == "__main__":
    main()
