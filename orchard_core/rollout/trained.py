"""Finding out what a model was trained on."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from orchard_core.errors import ConfigError
from orchard_core.gateway.contract import Model
from orchard_core.types.training import TrainedOn

PROVENANCE_NAME = "orchard-provenance.json"
_LARGEST = 1 << 20


def trained_on(model: Model, text: str) -> TrainedOn | None:
    """What the model says itself (an attribute `provenance`), else what lies beside its weights when its
    written form, such as `vllm:checkpoints/step-40`, names a local directory; None: it does not say.

    Raises ConfigError when the file is there and is not such a record.
    """
    said = getattr(model, "provenance", None)
    if isinstance(said, TrainedOn):
        return said
    _, _, argument = text.partition(":")
    path = Path(argument or model.name) / PROVENANCE_NAME
    try:
        with path.open("rb") as stream:
            data = stream.read(_LARGEST)
    except (OSError, ValueError):  # no such directory, or no path at all
        return None
    try:
        return TrainedOn.model_validate_json(data)
    except ValidationError as error:
        raise ConfigError(
            f"{path} is not a provenance record: {error}",
            hint="its fields: harness, taskset, base_model, step",
        ) from error
