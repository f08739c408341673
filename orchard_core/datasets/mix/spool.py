"""Rows on their way from a source to a shard: one frame each, so that any of them can be fetched.

Frames are not compressed: packing and unpacking them was measured to cost a quarter of a whole mix, and they
are gone when it ends. Nor are they synced: a kill loses nothing that was written, and after a power failure
sources are read anew (see scan.py).
"""

from __future__ import annotations

import os
import struct
from array import array
from pathlib import Path
from typing import Any

import orjson

from orchard_core.errors import DatasetCorrupt
from orchard_core.types.dataset import AnswerSpan, DatasetRow, RecordedTokens
from orchard_core.types.model import VersionSpan
from orchard_core.types.rollout import Attribution, Outcome
from orchard_core.types.sample import SampleLabel

_HEAD = struct.Struct("<6Q")
"""Bytes of the small fields, messages, tools, token ids, mask, log-probabilities."""
_BIG = {"messages", "tools", "tokens"}
_LABELS = {label.value: label for label in SampleLabel}
_OUTCOMES = {outcome.value: outcome for outcome in Outcome}
_ATTRIBUTIONS = {attribution.value: attribution for attribution in Attribution}


def framed(row: DatasetRow, messages: bytes) -> list[bytes]:
    """The parts of a row's frame, to be written one after the other; `messages` are its own, encoded. Raises
    UnicodeEncodeError."""
    parts = [_small(row), messages, row.tools.encode(), *_columns(row.tokens)]
    return [_HEAD.pack(*map(len, parts)), *parts]


def _small(row: DatasetRow) -> bytes:
    """The fields but for the big ones; of the tokens, what is no column."""
    fields = row.model_dump_json(exclude=_BIG).encode()
    if row.tokens is None:
        return fields
    rest = row.tokens.model_dump_json(include={"versions", "answers"}).encode()
    return b'%s,"tokens":%s}' % (fields[:-1], rest)


def _columns(tokens: RecordedTokens | None) -> tuple[bytes, bytes, bytes]:
    if tokens is None:
        return b"", b"", b""
    return (
        array("q", tokens.token_ids).tobytes(),
        bytes(tokens.mask),
        array("d", tokens.logprobs).tobytes(),
    )


class Spool:
    """Frames in a file, fetched by place."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def row(self, offset: int, length: int) -> DatasetRow:
        """The row whose frame lies there. Raises DatasetCorrupt."""
        whole = os.pread(self._fd, length, offset)
        parts = _parts(whole)
        if parts is None:
            raise DatasetCorrupt(
                "the rows kept here were damaged",
                path=str(self._path),
                hint=f"remove {self._path.parent}, and start the mix anew",
            )
        return _row(*parts)

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._fd)


def _parts(whole: bytes) -> list[bytes] | None:
    """None for what is no frame."""
    if len(whole) < _HEAD.size:
        return None
    sizes = _HEAD.unpack_from(whole)
    if len(whole) != _HEAD.size + sum(sizes):
        return None
    at, parts = _HEAD.size, []
    for size in sizes:
        parts.append(whole[at : at + size])
        at += size
    return parts


def _row(small: bytes, messages: bytes, tools: bytes, ids: bytes, mask: bytes, logprobs: bytes) -> DatasetRow:
    """What `framed` was given: it vouches for the fields, which are not validated twice."""
    fields: dict[str, Any] = orjson.loads(small)
    fields["label"] = _LABELS[fields["label"]]
    fields["outcome"] = _OUTCOMES.get(fields["outcome"])
    fields["attribution"] = _ATTRIBUTIONS.get(fields["attribution"])
    if (rest := fields.get("tokens")) is not None:
        fields["tokens"] = RecordedTokens.model_construct(
            token_ids=tuple(array("q", ids)), mask=tuple(mask), logprobs=tuple(array("d", logprobs)),
            versions=tuple(VersionSpan(**span) for span in rest["versions"]),
            answers=tuple(AnswerSpan(**span) for span in rest["answers"]),
        )  # fmt: skip
    for name in ("mask", "weights", "values", "tags"):
        fields[name] = tuple(fields[name])
    return DatasetRow.model_construct(**fields, messages=messages.decode(), tools=tools.decode())
