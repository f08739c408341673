"""Logs as JSON, one line an event, on standard error."""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType

import orjson

from orchard_env.service.redaction import Redacting

ACCESS = logging.getLogger("orchard.service.access")
"""One line a request: never bodies, queries, keys or commands."""

SERVICE = logging.getLogger("orchard.service")
"""What the service does by itself, and what goes wrong."""


REQUEST: ContextVar[Mapping[str, str]] = ContextVar("request", default=MappingProxyType({}))
"""What stands in every line that is written in a request's task, or in one that it started: `request_id`, and
`trace_id` where it belongs to a trace."""


class JsonLines(logging.Formatter):
    """A record as one line of JSON; what `extra={"fields": {...}}` gives stands beside the message."""

    def format(self, record: logging.LogRecord) -> str:
        """See logging.Formatter."""
        line: dict[str, object] = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{record.msecs:03.0f}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= REQUEST.get()
        fields = getattr(record, "fields", None)
        if isinstance(fields, dict):
            line |= fields
        if record.exc_info and record.exc_info[1] is not None:
            line["trace"] = "".join(traceback.format_exception(record.exc_info[1]))
        try:
            return orjson.dumps(line, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
        except TypeError:  # half a surrogate pair, or a number that is too large: no reason to lose the line
            return json.dumps({name: _plain(value) for name, value in line.items()})


def _plain(value: object) -> str | int | None:
    return value if isinstance(value, str | int | None) else str(value)


def log_to_stderr(level: str = "info") -> None:
    """For the command: nothing else in this package touches logging. What other libraries have to say, from
    warnings on, goes the same way, so that every line is JSON and none holds a secret."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Redacting(JsonLines()))
    logging.root.handlers[:] = [handler]
    logging.root.setLevel(logging.WARNING)
    logging.captureWarnings(True)
    for name in ("orchard", "orchard_env", "opentelemetry"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level.upper())
        logger.propagate = False
