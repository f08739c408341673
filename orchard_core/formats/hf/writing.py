"""Rows written as records of the `hf` format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from orchard_core.errors import FormatUnsupported
from orchard_core.formats.columns import need_pyarrow
from orchard_core.formats.fault import Fault
from orchard_core.formats.hf.config import HfConfig
from orchard_core.formats.hf.reading import NOTE
from orchard_core.formats.imported import CARRIED, carried_facts
from orchard_core.formats.text import an_object, dumped, parsed
from orchard_core.types.dataset import DatasetRow

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

UNTRAINED = -100
"""The label that PyTorch's cross entropy passes over."""


class HfWriter:
    """Makes records of rows."""

    def __init__(self, config: HfConfig) -> None:
        self._config = config

    def records(self, row: DatasetRow, parquet: bool) -> Iterator[dict[str, Any]]:
        """The records of one row. Raises FormatUnsupported."""
        note = row.metadata.get(NOTE)
        note = note if isinstance(note, dict) else {}
        messages = parsed(row.messages)
        objects = self._config.arguments == "object" or (
            self._config.arguments == "as-read" and note.get("arguments") == "object"
        )
        if objects and not parquet:
            messages = [_with_objects(message, row.id) for message in messages]
        columns = {} if parquet else parsed(str(note.get("columns", "{}")))
        tools = self._tools(row, note, parquet)
        for shaped, facts in self._shaped(row, messages):
            if parquet:
                for name in ("messages", "prompt", "completion"):
                    if name in shaped:
                        shaped[name] = [dumped(message) for message in shaped[name]]
            record = {**shaped, "tools": tools, **columns}
            if self._config.facts:
                record[CARRIED] = dumped(_told(facts, parquet=parquet))
            yield record

    def schema(self) -> pa.Schema:
        """Messages are JSON columns: what differs from row to row makes no nulls, and `datasets` gives them
        as objects."""
        arrow = need_pyarrow()
        chat, text = arrow.list_(arrow.json_(arrow.string())), arrow.string()
        ints = arrow.list_(arrow.int64())
        columns = {
            "messages": [("messages", chat)],
            "masked": [("messages", chat), ("mask", ints), ("weights", arrow.list_(arrow.float64()))],
            "turns": [("prompt", chat), ("completion", chat)],
            "tokens": [
                ("input_ids", arrow.list_(arrow.int32())),
                ("labels", arrow.list_(arrow.int32())),
                ("messages", chat),
            ],
        }[self._config.shape]
        columns.append(("tools", text))
        if self._config.facts:
            columns.append((CARRIED, text))
        return arrow.schema(
            columns, metadata={"huggingface": dumped({"info": {"features": _features(columns)}})}
        )

    def _tools(self, row: DatasetRow, note: dict[str, Any], parquet: bool) -> Any:
        listed = self._config.tools == "list" or (
            self._config.tools == "as-read" and note.get("tools") == "list"
        )
        return parsed(row.tools) if listed and not parquet else row.tools

    def _shaped(
        self, row: DatasetRow, messages: list[Any]
    ) -> Iterable[tuple[dict[str, Any], dict[str, Any]]]:
        facts = carried_facts(row)
        match self._config.shape:
            case "messages":
                self._refuse_masks(row, messages)
                return [({"messages": messages}, facts)]
            case "masked":
                weights = list(row.weights) or [1.0] * len(messages)
                return [({"messages": messages, "mask": list(row.mask), "weights": weights}, facts)]
            case "tokens":
                return [({**_tokens(row), "messages": messages}, facts)]
            case _:
                return _turns(row, messages, facts)

    def _refuse_masks(self, row: DatasetRow, messages: list[Any]) -> None:
        trained = sum(row.mask)
        if self._config.drop_masks or (trained == row.turns and not row.weights):
            return
        raise FormatUnsupported(
            f"row {row.id} trains {trained} of its {row.turns} answers, and messages alone do not say which",
            hint="write hf:masked, hf:turns or hf:tokens, or give --option drop_masks=true to train on all",
        )


def _turns(
    row: DatasetRow, messages: list[Any], facts: dict[str, Any]
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """One prompt and completion for each answer that is trained: what TRL trains is the completion alone."""
    for turn, place in enumerate(place for place, bit in enumerate(row.mask) if bit):
        kept = {key: value for key, value in facts.items() if key not in ("mask", "weights", "values")}
        kept["id"] = f"{row.id}@{turn}"
        if row.weights:
            kept["weights"] = [*([0.0] * place), row.weights[place]]
        kept["mask"] = [*([0] * place), 1]
        yield {"prompt": messages[:place], "completion": [messages[place]]}, kept


def _tokens(row: DatasetRow) -> dict[str, Any]:
    """Ids and labels; an answer that is not trained has no labels."""
    tokens = row.tokens
    if tokens is None:
        raise FormatUnsupported(
            f"row {row.id} has no token ids",
            hint="token ids come from models that report them; write hf:turns for the others",
        )
    bits = bytearray(tokens.mask)
    for answer in tokens.answers:
        if not row.mask[answer.message]:
            bits[answer.start : answer.stop] = bytes(answer.stop - answer.start)
    labels = [token if bit else UNTRAINED for token, bit in zip(tokens.token_ids, bits, strict=True)]
    return {"input_ids": list(tokens.token_ids), "labels": labels}


def _with_objects(message: dict[str, Any], row: str) -> dict[str, Any]:
    if not message.get("tool_calls"):
        return message
    return {**message, "tool_calls": [_call_with_object(call, row) for call in message["tool_calls"]]}


def _call_with_object(call: dict[str, Any], row: str) -> dict[str, Any]:
    function = call["function"]
    try:
        value = an_object(parsed(function["arguments"] or "{}"), "arguments")
    except Fault as fault:
        raise FormatUnsupported(
            f"row {row} has call arguments that are no object: {fault.message}",
            hint="leave such rows out (the filter for unparsable actions), or write arguments=text",
        ) from None
    return {**call, "function": {**function, "arguments": value}}


def _told(facts: dict[str, Any], *, parquet: bool) -> dict[str, Any]:
    """What is said in columns of their own is not said twice."""
    metadata = facts.get("metadata")
    if parquet or not isinstance(metadata, dict) or NOTE not in metadata:
        return facts
    rest = {key: value for key, value in metadata.items() if key != NOTE}
    return {
        **{key: value for key, value in facts.items() if key != "metadata"},
        **({"metadata": rest} if rest else {}),
    }


_NAMES = {"string": "string", "int64": "int64", "int32": "int32", "double": "float64"}


def _features(columns: list[tuple[str, Any]]) -> dict[str, Any]:
    """The columns as `datasets` writes them into a Parquet file."""
    return {name: _feature(kind) for name, kind in columns}


def _feature(kind: Any) -> dict[str, Any]:
    if getattr(kind, "extension_name", "") == "arrow.json":
        return {"_type": "Json"}
    if hasattr(kind, "value_type"):
        return {"feature": _feature(kind.value_type), "_type": "List"}
    return {"dtype": _NAMES[str(kind)], "_type": "Value"}
