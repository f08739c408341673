"""The OpenAPI document says what the service does, for any input."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from orchard_env.service.seams import Tenant
from schemathesis import GenerationMode
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    negative_data_rejection,
    positive_data_acceptance,
    unsupported_method,
)

from orchard_core import load_provider

from ..running import GENEROUS_S, KnownKeys, Running, parts_of, running

KEY = "a-good-key"
EXAMPLES = 4
"""Of each call."""
EXCLUDED = [negative_data_rejection, positive_data_acceptance, unsupported_method]
"""Whether a file, a user or a program of a made-up name is there, no document tells; and paths of JSON
bodies take more forms than it tells of."""
ENDS = {"/v2/sandboxes/{sandbox_id}", "/v2/sandboxes/{sandbox_id}/reset"}
"""Calls that would end the sandbox that the others are tried on."""


def test_the_document_names_every_call_of_v2(client: httpx.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    one = "/v2/sandboxes/{sandbox_id}"
    assert {path for path in paths if path.startswith("/v2")} == {
        "/v2/capabilities", "/v2/usage", "/v2/sandboxes", one, f"{one}/heartbeat", f"{one}/extend",
        f"{one}/reset", f"{one}/exec", f"{one}/exec/stream", f"{one}/execs", f"{one}/execs/{{exec_id}}",
        f"{one}/execs/{{exec_id}}/signal", f"{one}/execs/{{exec_id}}/logs", f"{one}/execs/{{exec_id}}/stdin",
        f"{one}/execs/{{exec_id}}/events", f"{one}/files", f"{one}/files/mkdir", f"{one}/files/move",
        f"{one}/files/stat", f"{one}/files/list", f"{one}/tree", f"{one}/snapshot", f"{one}/fork",
        "/v2/snapshots", "/v2/snapshots/{snapshot_id}", f"{one}/endpoint", f"{one}/metrics",
        f"{one}/agent/{{path}}",
    }  # fmt: skip


def test_every_reference_in_the_document_leads_to_a_schema(client: httpx.Client) -> None:
    told = client.get("/openapi.json")
    schemas = told.json()["components"]["schemas"]
    named = set(re.findall(r'"\$ref":\s*"#/components/schemas/([^"]+)"', told.text))
    assert {name for name in named if name.endswith("__Problem")}
    assert named <= set(schemas)


@pytest.fixture(scope="module")
def keyed(isolation: None) -> Iterator[Running]:
    """A service that asks for a key."""
    keys = KnownKeys(**{KEY: Tenant(name="ours")})
    with running(lambda: parts_of(load_provider("local"), tenancy=keys), key=KEY) as served:
        yield served


@pytest.mark.slow
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_no_input_makes_the_service_fail_or_answer_otherwise_than_the_document_says(
    keyed: Running, mode: GenerationMode
) -> None:
    with keyed.client() as client:
        sandbox = client.post("/v2/sandboxes", params={"wait": GENEROUS_S}, json={}).json()["id"]
    schema = schemathesis.openapi.from_url(f"{keyed.url}/openapi.json", headers={"X-API-Key": KEY})
    for found in schema.get_all_operations():
        assert isinstance(found, Ok), found
        call = found.ok()
        if call.path.startswith("/v2") and (call.path not in ENDS or call.method.upper() == "GET"):
            examine(call, mode, keyed, sandbox)


def examine(
    call: APIOperation[Any, Any, Any, Any], mode: GenerationMode, service: Running, sandbox: str
) -> None:
    """Try one call with made-up input, on a sandbox that is there."""

    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, derandomize=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=call.as_strategy(mode))
    def tried(case: schemathesis.Case[Any]) -> None:
        if "sandbox_id" in case.path_parameters:
            case.path_parameters["sandbox_id"] = sandbox
        for wait in ("wait", "timeout_s"):
            if wait in (case.query or {}):
                case.query[wait] = 0
        case.call_and_validate(
            base_url=service.url, headers={"X-API-Key": KEY}, excluded_checks=EXCLUDED, timeout=60
        )

    try:
        tried()
    except Unsatisfiable:  # nothing could be wrong about a call that takes nothing
        return
