"""Options of the `hf` format."""

from __future__ import annotations

from typing import Literal

from orchard_core.types.base import Record

Shape = Literal["messages", "masked", "turns", "tokens"]


class HfConfig(Record):
    """What is written; reading takes every shape."""

    shape: Shape = "messages"
    """`messages`: the whole conversation; `masked`: with `mask` and `weights` beside it; `turns`: `prompt`
    and `completion` for each answer that is trained; `tokens`: `input_ids` and `labels` as recorded."""
    files: Literal["jsonl", "parquet"] = "jsonl"
    """What a directory holds; a file is what its name says."""
    arguments: Literal["as-read", "text", "object"] = "as-read"
    """Call arguments as the text that was sampled or as an object, which some chat templates need; as-read:
    as the file had them that a row is from, else text."""
    tools: Literal["as-read", "text", "list"] = "as-read"
    """Tool definitions as one JSON text or as a list."""
    facts: bool = True
    """Write what else a row says, as a JSON text in a column `orchard`."""
    drop_masks: bool = False
    """Write whole conversations although some answers in them are not to be trained."""
