"""Nothing that looks like a secret passes into a line of log."""

from __future__ import annotations

import io
import logging

import pytest
from orchard_env.service.redaction import Redacting, redact_handlers, redacted
from orchard_env.service.tenancy.secret import new_secret

SECRET = "s3cr3t-0123456789abcdef"


@pytest.mark.parametrize(
    "text",
    [
        f"X-API-Key: {SECRET}",
        f"GET /sandboxes/x/exec/pty?api_key={SECRET}&rows=2",
        f"Authorization: Bearer {SECRET}",
        f'{{"token": "{SECRET}"}}',
        f"AgentEndpoint(url='http://x', token='{SECRET}', sandbox_id='y')",
        f"redis://:{SECRET}@host:6379/0",
        f"rediss://user:{SECRET}@host",
        f"password={SECRET}",
        f"{{'authorization': 'bearer {SECRET}'}}",
    ],
)
def test_a_secret_is_taken_out_wherever_it_stands(text: str) -> None:
    assert SECRET not in redacted(text)
    assert redacted(redacted(text)) == redacted(text)


def test_a_key_of_ours_is_known_by_its_form_and_its_id_stays() -> None:
    key = new_secret()
    text = redacted(f"cannot use {key.text}, said the client")
    assert key.text[17:] not in text
    assert key.id in text


@pytest.mark.parametrize(
    "text",
    [
        "sandbox sb-0123456789abcdef is ready",
        "image sha256:" + "a" * 64,
        "http://host:8000/sandboxes?limit=3",
        "the token of the sandbox was refused",
        "2 passwords were changed",
    ],
)
def test_what_is_no_secret_stays_as_it_is(text: str) -> None:
    assert redacted(text) == text


def test_traces_and_arguments_go_out_without_secrets_too() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    redact_handlers([handler])
    redact_handlers([handler])
    assert isinstance(handler.formatter, Redacting)
    log = logging.Logger("here")
    log.addHandler(handler)
    key = new_secret().text
    try:
        raise ValueError(f"refused {key}")
    except ValueError:
        log.exception("for %s with password=%s", key, SECRET)
    assert "Traceback" in stream.getvalue()
    assert key[17:] not in stream.getvalue()
    assert SECRET not in stream.getvalue()
