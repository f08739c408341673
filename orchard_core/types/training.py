"""Where a model's weights come from."""

from __future__ import annotations

from orchard_core.types.base import Record


class TrainedOn(Record):
    """What a checkpoint was trained on; it lies beside the weights as `orchard-provenance.json`."""

    schema_version: int = 1
    """Version of this record's shape."""
    harness: str
    """The harness whose rollouts it was trained on."""
    taskset: str = ""
    """The task set they were on."""
    base_model: str = ""
    """The model that training began with."""
    step: int | None = None
    """The training step of the checkpoint."""
