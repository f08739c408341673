"""Putting a credit on a row: what of it is trained on."""

from __future__ import annotations

from typing import Any

from orchard_core.errors import CreditRefused, DatasetCorrupt
from orchard_core.gateway.json_text import JsonFault, loads
from orchard_core.types.credit import Credit
from orchard_core.types.dataset import DatasetRow
from orchard_core.types.sample import SampleLabel


def apply_credit(row: DatasetRow, credit: Credit) -> DatasetRow:
    """The row with its mask narrowed to the answers the credit keeps, its values, and the estimator's name.

    A resolved rollout's row stays as it is. A mask is only ever narrowed, so doing it twice changes nothing.
    What no value was estimated for is not trained on: every answer of a credit with an error, and the further
    conversations of an unresolved rollout, as only its main one is judged. Token ids and their mask stay as
    recorded. Raises CreditRefused when the credit is another rollout's or has another number of turns.
    """
    if credit.rollout != row.rollout:
        raise CreditRefused(
            f"the credit of rollout {credit.rollout} was to be put on row {row.id}",
            hint="look credits up by the row's `rollout`",
        )
    if credit.resolved:
        return row
    if credit.error or row.label is not SampleLabel.MAIN:
        return row.model_copy(update={"mask": (0,) * len(row.mask), "credit": credit.estimator})
    if len(credit.mask) != row.turns:
        raise CreditRefused(
            f"the credit of rollout {row.rollout} has {len(credit.mask)} turns, and its row has {row.turns}",
            hint="assign credit anew: the rows were made in another way",
        )
    mask = _narrowed(row, credit.mask)
    return row.model_copy(update={"mask": mask, "values": credit.values, "credit": credit.estimator})


def _narrowed(row: DatasetRow, kept: tuple[int, ...]) -> tuple[int, ...]:
    """[M] The row's mask, with each assistant's message multiplied by its turn's."""
    mask = [0] * len(row.mask)
    places = assistants(row)
    if len(places) != row.turns:
        what = f"{len(places)} answers, and `turns` says {row.turns}"
        raise DatasetCorrupt(what, path=row.id, field="messages")
    for place, keep in zip(places, kept, strict=True):
        mask[place] = row.mask[place] & keep
    return tuple(mask)


def assistants(row: DatasetRow) -> list[int]:
    """Places of the assistant's messages, in order. Raises DatasetCorrupt."""
    messages = read_messages(row)
    found = [place for place, message in enumerate(messages) if message.get("role") == "assistant"]
    if len(messages) != len(row.mask):
        raise DatasetCorrupt(
            f"{len(messages)} messages, and `mask` has {len(row.mask)}", path=row.id, field="messages"
        )
    return found


def read_messages(row: DatasetRow) -> list[dict[str, Any]]:
    """The row's messages. Raises DatasetCorrupt for what is no list of objects."""
    try:
        messages = loads(row.messages)
    except JsonFault as error:
        raise DatasetCorrupt(f"not JSON: {error}", path=row.id, field="messages") from None
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise DatasetCorrupt("not a list of objects", path=row.id, field="messages")
    return messages
