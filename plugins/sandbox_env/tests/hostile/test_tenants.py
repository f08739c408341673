"""A tenant who wants what is another's: by its ids, forged ones, odd addresses, labels and logs."""

from __future__ import annotations

import base64
import contextlib
import json
import signal
import socket
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from orchard_env.cli.app import app
from typer.testing import CliRunner

from ..service.running import GENEROUS_S, Running
from ..service.test_serve import lines, served


def said(service: Running, method: str, target: str, *, key: str, body: bytes = b"") -> tuple[int, bytes]:
    """Status and all of the answer to a target that no library changes on its way."""
    address = urlsplit(service.url)
    head = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    told = b""
    with socket.create_connection((str(address.hostname), int(address.port or 0)), GENEROUS_S) as peer:
        peer.sendall(head.encode("latin-1") + body)
        with contextlib.suppress(ConnectionResetError):
            while piece := peer.recv(1 << 16):
                told += piece
    return int(told.split(b" ", 2)[1]), told


@pytest.fixture(scope="module")
def theirs(shared: Running, neighbour: str) -> str:
    """The second tenant's sandbox, with a file and a command that nobody else may know of."""
    with shared.as_caller("theirs").client() as client:
        client.put(f"/v2/sandboxes/{neighbour}/files?path=/workspace/f", content=b"MARK").raise_for_status()
        asked = {"id": "known", "command": "echo MARK"}
        client.post(f"/v2/sandboxes/{neighbour}/execs", json=asked).raise_for_status()
        job = {"command": "echo MARK", "exec_id": "job", "wait": True}
        client.post(f"/sandboxes/{neighbour}/exec", json=job).raise_for_status()
    return neighbour


@pytest.mark.parametrize(
    "way",
    [
        "/v2/sandboxes/{ours}/../{theirs}/files?path=/workspace/f",
        "/v2/sandboxes/{ours}/%2e%2e/{theirs}/files?path=/workspace/f",
        "/v2/sandboxes/{ours}%2f..%2f{theirs}/files?path=/workspace/f",
        "/v2/sandboxes/{ours}/agent/../../{theirs}/agent/v1/files?path=/workspace/f",
        "/v2/sandboxes/{ours}/agent/%2e%2e/%2e%2e/{theirs}/agent/v1/files?path=/workspace/f",
        "/v2/sandboxes/{ours}/agent/v1/files?path=/workspace/f&sandbox_id={theirs}",
        "/v2/sandboxes/{ours}/agent//v1/files?path=/workspace/f",
        "/v2//sandboxes/{theirs}/files?path=/workspace/f",
        "//v2/sandboxes/{theirs}/files?path=/workspace/f",
        "/v2/sandboxes/{theirs};{ours}/files?path=/workspace/f",
        "/v2/sandboxes/{theirs}%00/files?path=/workspace/f",
        "/v2/sandboxes/{theirs}%20/files?path=/workspace/f",
        "/v2/sandboxes/{theirs}./files?path=/workspace/f",
        "/v2/sandboxes/%2a/files?path=/workspace/f",
        "http://localhost/v2/sandboxes/{theirs}/files?path=/workspace/f",
        "/sandboxes/{ours}/../{theirs}/files?path=/workspace/f",
        "/sandboxes/{theirs}/files?path=/workspace/f",
        "/v2/sandboxes/{theirs}/execs/known/logs",
        "/v2/sandboxes/{ours}/execs/..%2f..%2f{theirs}%2fexecs%2fknown/logs",
        "/v2/sandboxes/{ours}/execs/known/logs",
        "/v2/sandboxes/{ours}/agent/v1/exec/known",
        "/jobs/{theirs}.job",
        "/jobs/{ours}.job",
        "/jobs/{ours}.{theirs}.job",
        "/jobs/{ours}%2f..%2f{theirs}.job",
    ],
)
def test_no_way_to_write_an_address_leads_to_anothers(
    shared: Running, box: str, theirs: str, way: str
) -> None:
    status, told = said(shared, "GET", way.format(ours=box, theirs=theirs), key="ours")
    assert 400 <= status < 500
    assert b"MARK" not in told


@pytest.mark.parametrize("call", ["tokens", "restart", "shutdown", "changes", "tunnel", "forward/22", "raw"])
@pytest.mark.parametrize(
    "way", ["v1/{}", "v1/%65xec/../{}", "v1/files/../{}", "./v1/{}", "v1/{}?", "v1//{}", "v1/{}/"]
)
def test_no_way_to_write_an_address_leads_to_what_is_the_services_own(
    shared: Running, box: str, call: str, way: str
) -> None:
    for method in ("GET", "POST", "PUT", "DELETE"):
        target = f"/v2/sandboxes/{box}/agent/{way.format(call)}"
        status, told = said(shared, method, target, key="ours", body=b"n" * 64)
        assert status in (404, 405), told
    assert said(shared, "GET", f"/v2/sandboxes/{box}", key="ours")[0] == 200


@pytest.mark.parametrize(
    "label", ["orchard.dev/tenant", "orchard.dev/asked", "orchard.dev/isolated", "orchard.dev/"]
)
def test_no_label_makes_a_sandbox_anothers(shared: Running, label: str) -> None:
    with shared.client() as client:
        for path, body in (
            ("/sandboxes", {"image": "host", "labels": {label: "theirs"}}),
            ("/v2/sandboxes", {"spec": {"labels": {label: "theirs"}}}),
        ):
            answer = client.post(path, json=body)
            assert (answer.status_code, answer.json()["error"]) == (422, "RequestInvalid")


def test_no_snapshot_can_be_forged_or_renamed(shared: Running, theirs: str) -> None:
    with shared.client() as client, shared.client(key="theirs") as owner:
        saved = owner.post(f"/v2/sandboxes/{theirs}/snapshot").raise_for_status().json()
        raw = base64.urlsafe_b64decode(saved["id"] + "==")
        forged = (
            raw[16:],
            b"\0" * 16 + raw[16:],
            raw[:16] + b"../" + raw[16:],
            raw[:15] + b"\0" + raw[16:],
            b"",
            raw,
        )
        for each in forged:
            said_id = base64.urlsafe_b64encode(each).decode().rstrip("=")
            restored = client.post("/v2/sandboxes", json={"restore": {**saved, "id": said_id}})
            assert 400 <= restored.status_code < 500, restored.text
            if said_id:
                assert client.delete(f"/v2/snapshots/{said_id}").status_code == 404
        assert owner.delete(f"/v2/snapshots/{saved['id']}").status_code == 204


def test_a_command_of_one_id_in_two_tenants_sandboxes_is_two_commands(
    shared: Running, box: str, theirs: str
) -> None:
    with shared.client() as client:
        asked = {"command": "echo mine", "exec_id": "job", "wait": True}
        mine = client.post(f"/sandboxes/{box}/exec", json=asked).raise_for_status().json()
        assert (mine["job_id"], mine["stdout"]) == (f"{box}.job", "mine\n")
        assert client.get(f"/jobs/{theirs}.job").status_code == 404
        assert client.post(f"/jobs/{theirs}.job/kill").status_code in (404, 405)
        assert client.delete(f"/jobs/{theirs}.job").status_code in (404, 405)


def _key(keys: Path, tenant: str) -> str:
    made = CliRunner().invoke(app, ["keys", "create", tenant, "--keys", str(keys)])
    assert made.exit_code == 0, made.output
    return made.stdout.strip()


@pytest.mark.slow
def test_no_client_writes_lines_of_its_own_into_a_log_or_hides_who_it_is(tmp_path: Path) -> None:
    forged = '{"tenant":"root"}'
    audit = tmp_path / "audit.jsonl"
    key = _key(tmp_path / "keys.json", "mallory")
    flags = ("--provider", "process", "--keys", str(tmp_path / "keys.json"), "--audit", str(audit))
    with served(*flags) as (process, client):
        client.headers.update(
            {"X-API-Key": key, "X-Forwarded-For": "6.6.6.6", "X-Request-Id": f"a\t{forged}"}
        )
        made = client.post("/v2/sandboxes", params={"wait": GENEROUS_S}, json={}).json()["id"]
        client.post(f"/v2/sandboxes/{made}/exec", json={"command": f"true\n{forged}\n\u2028{key}"})
        client.put(f"/v2/sandboxes/{made}/files", params={"path": f"/tmp/x\n{forged}"}, content=b"")
        client.get(f"/v2/sandboxes/%0a{forged}%0d%0a")
        client.get("/", headers={"X-API-Key": f"ork_{forged}"})
        with httpx.Client(base_url=client.base_url, headers={"X-API-Key": f"wrong {forged}"}) as wrong:
            assert wrong.get("/v2/sandboxes").status_code in (401, 403)
        process.send_signal(signal.SIGINT)
        log = lines(process)
    events = [json.loads(line) for line in audit.read_bytes().split(b"\n") if line]
    assert {event["tenant"] for event in events} == {"mallory", ""}
    assert {line.get("tenant", "") for line in log} <= {"mallory", ""}
    assert {event["client"] for event in events} == {"127.0.0.1"}
    assert key not in audit.read_text() + json.dumps(log)
