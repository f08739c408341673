"""Rows on their way from a source to a shard: one frame each, so that any of them can be fetched.

A row's messages are left where they stand in the source, if they stand there just so (see slices.py). Frames
are not compressed: packing and unpacking them was measured to cost a quarter of a whole mix, and they
are gone when it ends. Nor are they synced: a kill loses nothing that was written, and after a power failure
sources are read anew (see scan.py).
"""

from __future__ import annotations

import os
import struct
from array import array
from typing import Any, NamedTuple

import orjson

from orchard_core.datasets.mix.lines import Place
from orchard_core.datasets.mix.scan import Scan
from orchard_core.datasets.mix.slices import Slices
from orchard_core.errors import DatasetCorrupt
from orchard_core.types.dataset import AnswerSpan, DatasetRow, RecordedTokens
from orchard_core.types.model import VersionSpan
from orchard_core.types.rollout import Attribution, Outcome
from orchard_core.types.sample import SampleLabel

_HEAD = struct.Struct("<7Q")
"""Bytes of the small fields, messages, their place, tools, token ids, mask, log-probabilities. Either the
messages are empty or their place."""
_PLACE = struct.Struct("<3Q")
_BIG = {"messages", "tools", "tokens"}
_LABELS = {label.value: label for label in SampleLabel}
_OUTCOMES = {outcome.value: outcome for outcome in Outcome}
_ATTRIBUTIONS = {attribution.value: attribution for attribution in Attribution}


class Frame(NamedTuple):
    """A row as it waits."""

    parts: list[bytes]
    """To be written one after the other."""
    length: int
    """Bytes of the parts."""
    size: int
    """Bytes of the row, wherever its messages stand."""


def framed(row: DatasetRow, messages: bytes, place: Place | None = None) -> Frame:
    """A row's frame; `messages` are its own, encoded, and are left out of it where they stand at a `place` of
    the source. Raises UnicodeEncodeError."""
    where = _PLACE.pack(*place) if place else b""
    parts = [_small(row), b"" if place else messages, where, row.tools.encode(), *_columns(row.tokens)]
    length = _HEAD.size + sum(map(len, parts))
    size = length + len(messages) - len(where) if place else length
    return Frame([_HEAD.pack(*map(len, parts)), *parts], length, size)


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


class SpooledRow(NamedTuple):
    """A row on its way out."""

    row: DatasetRow
    """All but its messages."""
    messages: bytes
    """These, encoded."""


class Spool:
    """The frames of one source, fetched by where they lie."""

    def __init__(self, job: Scan) -> None:
        self._job = job
        self._slices = Slices(job)
        self._fd = os.open(job.spool, os.O_RDONLY | os.O_CLOEXEC)

    def row(self, offset: int, length: int) -> SpooledRow:
        """The row whose frame lies there. Raises DatasetCorrupt, and DatasetError where the source that holds
        its messages cannot be read any more."""
        parts = _parts(os.pread(self._fd, length, offset))
        if parts is None:
            raise DatasetCorrupt(
                "the rows kept here were damaged",
                path=str(self._job.spool),
                hint=f"remove {self._job.work}, and start the mix anew",
            )
        small, messages, where, *rest = parts
        if where:
            messages = self._slices.fetch(Place(*_PLACE.unpack(where)))
        return SpooledRow(_row(small, *rest), messages)

    def check(self) -> None:
        """Raises DatasetError when the source is not what it was, and rows were fetched from it."""
        self._slices.check()

    def close(self) -> None:
        """Give the descriptors back."""
        self._slices.close()
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


def _row(small: bytes, tools: bytes, ids: bytes, mask: bytes, logprobs: bytes) -> DatasetRow:
    """What `framed` was given, without messages: it vouches for the fields, which are not validated twice."""
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
    return DatasetRow.model_construct(**fields, messages="", tools=tools.decode())
