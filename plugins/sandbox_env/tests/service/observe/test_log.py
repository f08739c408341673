"""Every line of the log is one object of JSON, whoever wrote it and whatever stands in it."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from orchard_env.service.log import REQUEST, JsonLines
from orchard_env.service.redaction import Redacting

SECRET = "s3cr3t-0123456789abcdef"
OF_OTHERS = f"""
import asyncio, logging, warnings
from orchard_env.service.log import log_to_stderr

log_to_stderr()

async def forgotten():
    raise RuntimeError("nobody waits for this; password={SECRET}")

async def main():
    task = asyncio.create_task(forgotten())
    await asyncio.sleep(0.05)
    del task

asyncio.run(main())
warnings.warn("an old way to do it, api_key={SECRET}")
logging.getLogger("uvicorn.error").error("cannot bind\\nat all")
logging.getLogger("some.library").info("chatter")
"""


def lines_of(record: logging.LogRecord) -> list[dict[str, Any]]:
    """What goes out for it."""
    return [json.loads(line) for line in Redacting(JsonLines()).format(record).split("\n")]


def record(message: str, *args: object, **fields: object) -> logging.LogRecord:
    """An event with fields beside it."""
    made = logging.LogRecord("orchard.service", logging.INFO, __file__, 1, message, args, None)
    made.fields = fields
    return made


@pytest.fixture
def request_of_mine() -> Iterator[None]:
    token = REQUEST.set({"request_id": "r-1", "trace_id": "t-1"})
    yield
    REQUEST.reset(token)


@pytest.mark.usefixtures("request_of_mine")
def test_a_line_names_the_request_and_the_trace_that_it_was_written_in() -> None:
    (line,) = lines_of(record("a sandbox %s is ready", "sb-1", status=200))
    assert (line["request_id"], line["trace_id"], line["status"]) == ("r-1", "t-1", 200)
    assert (line["message"], line["level"]) == ("a sandbox sb-1 is ready", "info")


@pytest.mark.parametrize(
    "odd",
    ["half a pair \ud800", "two\nlines\r\n", '"}\n{"level": "forged"', "\x1b[2J\x00", 1 << 70, float("nan")],
)
def test_nothing_breaks_a_line_or_loses_it(odd: object) -> None:
    (line,) = lines_of(record("it said %s", odd, odd=odd, status=200, fault=ValueError("x")))
    assert line["message"].startswith("it said ")
    assert (line["level"], line["status"]) == ("info", 200)


def test_a_secret_in_a_line_that_is_hard_to_write_is_taken_out_as_well() -> None:
    (line,) = lines_of(record(f"\ud800 password={SECRET}", header=f"x-api-key: {SECRET}"))
    assert SECRET not in json.dumps(line)


def test_what_other_libraries_say_is_json_and_holds_no_secret_either() -> None:
    done = subprocess.run([sys.executable, "-c", OF_OTHERS], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["logger"] for line in lines] == ["asyncio", "py.warnings", "uvicorn.error"]
    assert "nobody waits for this" in lines[0]["trace"]
    assert SECRET not in done.stderr
