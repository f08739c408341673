"""What an agent, a service before it, or a proxy before that says, as the errors of the one tree."""

from __future__ import annotations

import json

import pytest

from orchard_core.errors import (
    AgentRefused,
    FileMissing,
    NotAnAgent,
    SandboxConnectionLost,
    SandboxError,
    SandboxGone,
    SandboxOutOfMemory,
    ServiceOverloaded,
)
from orchard_core.sandbox.agent.faults import agent_error


def said(**fields: str) -> bytes:
    return json.dumps({"message": "m", **fields}).encode()


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (404, said(code="path_not_found"), FileMissing),
        (404, said(error="FileMissing", hint="h"), FileMissing),
        (404, said(error="SandboxUnknown"), SandboxGone),
        (410, said(error="SandboxOutOfMemory"), SandboxOutOfMemory),
        (403, said(error="ScopeMissing"), AgentRefused),
        (429, said(error="TooManyRequests"), ServiceOverloaded),
        (502, b"<html>bad gateway</html>", SandboxConnectionLost),
        (503, b"", ServiceOverloaded),
        (500, said(error="OrchardError"), SandboxError),
        (418, b"[]", SandboxError),
        (400, said(error="agent_error"), SandboxError),
    ],
)
def test_an_answer_is_the_error_it_names_or_its_status_means(
    status: int, body: bytes, kind: type[SandboxError]
) -> None:
    assert type(agent_error(status, body, of_service=True)) is kind


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (404, said(code="path_not_found"), FileMissing),
        (410, said(error="SandboxOutOfMemory"), SandboxGone),
        (422, said(error="NodeLost"), SandboxError),
        (302, b"", NotAnAgent),
        (422, b"[" * 100_000, SandboxError),
    ],
)
def test_what_became_of_a_sandbox_is_not_its_agents_to_say(
    status: int, body: bytes, kind: type[SandboxError]
) -> None:
    assert type(agent_error(status, body)) is kind


def test_when_to_come_again_and_what_to_do_are_kept() -> None:
    error = agent_error(503, said(error="ServiceOverloaded", hint="wait"), {"retry-after": "7"})
    assert isinstance(error, ServiceOverloaded)
    assert (error.retry_after_s, error.hint) == (7.0, "wait")
    dated = agent_error(503, b"", {"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"})
    assert isinstance(dated, ServiceOverloaded)
    assert dated.retry_after_s is None
