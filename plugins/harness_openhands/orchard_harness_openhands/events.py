"""OpenHands' event logs, read back: a conversation's directory, or the artifact of a rollout."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from pydantic import ConfigDict

from orchard_core import Record, RecordCorrupt

ARTIFACT = "openhands/events.jsonl"
"""What the harness keeps: one event a line."""


class OpenHandsEvent(Record):
    """One event; the fields of its kind, such as `tool_call` or `observation`, are in `model_extra`."""

    model_config = ConfigDict(extra="allow")

    kind: str
    """ActionEvent, ObservationEvent, MessageEvent, SystemPromptEvent, AgentErrorEvent, ..."""
    id: str
    """OpenHands' own id."""
    source: str
    """agent, user, environment or hook."""
    timestamp: str
    """ISO 8601, without a zone."""


def read_events(log: Path) -> tuple[OpenHandsEvent, ...]:
    """The events of a conversation's directory, or of a file of lines. Raises RecordCorrupt and OSError."""
    if log.is_dir():
        return parse_events(path.read_bytes() for path in sorted(log.glob("events/event-*.json")))
    return parse_events(log.read_bytes().splitlines())


def parse_events(texts: Iterable[bytes]) -> tuple[OpenHandsEvent, ...]:
    """Events from their JSON texts. Raises RecordCorrupt."""
    try:
        return tuple(OpenHandsEvent.model_validate(json.loads(text)) for text in texts)
    except (ValueError, RecursionError) as error:
        raise RecordCorrupt(f"this is no event log of OpenHands: {error}") from error
