"""The columns of a shard: one a field of DatasetRow, of the same name."""

from __future__ import annotations

from orchard_core.datasets.store.arrow import pa
from orchard_core.types.dataset import DATASET_VERSION

VERSION_KEY = b"orchard.dataset_version"
"""Key of the version in a shard's own metadata; a shard without it is none of ours."""

SPAN = pa.struct([("start", pa.int32()), ("stop", pa.int32()), ("version", pa.string())])
"""VersionSpan."""
ANSWER = pa.struct([("message", pa.int32()), ("start", pa.int32()), ("stop", pa.int32())])
"""AnswerSpan."""
TOKENS = pa.struct([
    ("token_ids", pa.list_(pa.int32())),
    ("mask", pa.list_(pa.int8())),
    ("logprobs", pa.list_(pa.float64())),
    ("versions", pa.list_(SPAN)),
    ("answers", pa.list_(ANSWER)),
])  # fmt: skip
"""RecordedTokens. Doubles, so that a log-probability comes back as it was recorded."""

_KINDS = (
    (pa.string(), (
        "id", "rollout", "label", "messages", "tools", "credit", "harness", "model", "taskset", "task",
        "task_text", "outcome", "attribution", "split", "source", "provenance", "metadata",
    )),
    (pa.int64(), ("token_count", "turns", "attempt", "seed")),
    (pa.bool_(), ("token_count_exact",)),
    (pa.float64(), ("reward",)),
    (pa.list_(pa.string()), ("tags",)),
    (pa.list_(pa.int8()), ("mask",)),
    (pa.list_(pa.float64()), ("weights", "values")),
    (TOKENS, ("tokens",)),
)  # fmt: skip
TYPES = {name: kind for kind, names in _KINDS for name in names}
"""Arrow type of each column."""

ORDER = (
    "id", "messages", "tools", "mask", "weights", "values", "credit", "reward", "outcome", "attribution",
    "harness", "model", "taskset", "task", "task_text", "tags", "attempt", "seed", "label", "rollout",
    "turns",
    "token_count", "token_count_exact", "tokens", "split", "source", "provenance", "metadata",
)  # fmt: skip
NULLABLE = frozenset({"outcome", "attribution", "reward", "tokens"})
"""Fields that may be None."""

SCHEMA = pa.schema(
    [pa.field(name, TYPES[name], nullable=name in NULLABLE) for name in ORDER],
    metadata={VERSION_KEY: str(DATASET_VERSION).encode()},
)
"""Of every shard."""

DICTIONARY = [
    "label", "credit", "outcome", "attribution", "harness", "model", "taskset", "task", "split", "source",
    "rollout",
    "tools", "task_text", "provenance",
]  # fmt: skip
"""Columns whose values come back, and so are written once a row group."""
