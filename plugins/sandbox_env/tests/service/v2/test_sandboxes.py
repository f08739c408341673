"""Sandboxes of v2: made once, found, kept alive, copied."""

from __future__ import annotations

import httpx
import pytest

from ..running import GENEROUS_S

READY = {"wait": GENEROUS_S}


def make(client: httpx.Client, body: dict[str, object] | None = None, **headers: str) -> dict[str, object]:
    answer = client.post("/v2/sandboxes", params=READY, json=body or {}, headers=headers)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def test_a_sandbox_is_made_from_a_whole_spec_told_back_and_deleted(client: httpx.Client) -> None:
    spec = {"name": "whole", "env": {"A": "b"}, "labels": {"run": "7"}, "ttl_s": 600, "pids": 64,
            "files": [{"path": "/workspace/f", "content": "aGVsbG8="}]}  # fmt: skip
    found = make(client, {"spec": spec})
    assert (found["id"], found["status"]) == ("whole", "ready")
    told = found["spec"]
    assert isinstance(told, dict)
    assert (told["labels"], told["env"], told["ttl_s"]) == ({"run": "7"}, {"A": "b"}, 600)
    assert client.get("/v2/sandboxes/whole/files", params={"path": "/workspace/f"}).text == "hello"
    assert client.delete("/v2/sandboxes/whole").status_code == 200
    assert client.get("/v2/sandboxes/whole").json()["error"] == "SandboxUnknown"


def test_the_answer_comes_at_once_without_a_wait(client: httpx.Client) -> None:
    begun = client.post("/v2/sandboxes", json={}).json()
    assert begun["status"] == "pending"
    ready = client.get(f"/v2/sandboxes/{begun['id']}", params=READY).json()
    assert ready["status"] == "ready"
    client.delete(f"/v2/sandboxes/{begun['id']}")


def test_one_idempotency_key_is_one_sandbox(client: httpx.Client) -> None:
    key = {"Idempotency-Key": "key-1"}
    first = make(client, {"spec": {"labels": {"k": "1"}}}, **key)
    again = make(client, {"spec": {"labels": {"k": "1"}}}, **key)
    assert first["id"] == again["id"]
    other = client.post("/v2/sandboxes", json={"spec": {"labels": {"k": "2"}}}, headers=key)
    assert (other.status_code, other.json()["error"]) == (409, "SandboxExists")
    client.delete(f"/v2/sandboxes/{first['id']}")


def test_lists_are_filtered_by_labels_and_come_in_pages(client: httpx.Client) -> None:
    ids = [make(client, {"spec": {"labels": {"set": "p", "n": str(n)}}})["id"] for n in range(3)]
    first = client.get("/v2/sandboxes", params={"label": "set=p", "limit": 2}).json()
    rest = client.get("/v2/sandboxes", params={"label": "set=p", "cursor": first["next"]}).json()
    assert [each["id"] for each in first["sandboxes"] + rest["sandboxes"]] == ids
    assert rest["next"] is None
    one = client.get("/v2/sandboxes", params={"label": ["set=p", "n=1"], "status": "ready"}).json()
    assert [each["id"] for each in one["sandboxes"]] == ids[1:2]
    for each in ids:
        client.delete(f"/v2/sandboxes/{each}")


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ({"labels": {"orchard.dev/tenant": "other"}}, 422),
        ({"cpu": -1}, 422),
        ({"ttl_s": 1e300}, 422),
        ({"memory_mb": 0}, 422),
        ({"image": {"kind": "oci", "value": "x"}}, 422),
        ({"name": "../x"}, 422),
        ({"name": "A"}, 422),
        ({"no_such_field": 1}, 422),
        ({"files": [{"path": "relative", "content": ""}]}, 422),
        ({"env": {"A": 1}}, 422),
    ],
)
def test_a_spec_that_cannot_be_is_refused(client: httpx.Client, spec: dict[str, object], status: int) -> None:
    answer = client.post("/v2/sandboxes", params=READY, json={"spec": spec})
    assert answer.status_code == status, answer.text
    assert answer.json()["message"]


def test_a_life_is_extended(client: httpx.Client) -> None:
    found = make(client, {"spec": {"ttl_s": 3600}})
    at = f"/v2/sandboxes/{found['id']}"
    assert client.post(f"{at}/extend", json={"ttl_s": 7200}).status_code == 200
    assert client.post(f"{at}/extend", json={"ttl_s": 0}).status_code == 422
    assert client.post(f"{at}/heartbeat").json()["status"] == "ready"
    client.delete(at)


def test_a_reset_kills_what_runs_and_keeps_the_files(client: httpx.Client) -> None:
    at = f"/v2/sandboxes/{make(client)['id']}"
    client.post(f"{at}/exec", json={"command": "echo kept > /workspace/f"})
    client.post(f"{at}/execs", json={"id": "old", "command": "sleep 1000"})
    assert client.post(f"{at}/reset").json()["status"] == "ready"
    assert client.get(f"{at}/execs/old").status_code == 404
    assert (
        client.post(f"{at}/exec", json={"command": "cat /workspace/f"}).json()["stdout"]["data"] == "kept\n"
    )
    client.delete(at)


def test_a_snapshot_is_restored_and_forks_begin_with_its_files(client: httpx.Client) -> None:
    at = f"/v2/sandboxes/{make(client)['id']}"
    client.put(f"{at}/files", params={"path": "/workspace/f"}, content=b"saved")
    saved = client.post(f"{at}/snapshot").json()
    forks = client.post(f"{at}/fork", json={"count": 2}).json()["sandboxes"]
    restored = make(client, {"restore": saved})
    for each in (*(fork["id"] for fork in forks), restored["id"]):
        found = client.get(f"/v2/sandboxes/{each}/files", params={"path": "/workspace/f"})
        assert found.text == "saved"
        client.delete(f"/v2/sandboxes/{each}")
    forged = saved | {"id": saved["id"][:-4] + "AAAA"}
    assert client.post("/v2/sandboxes", json={"restore": forged}).json()["error"] == "SnapshotMissing"
    assert client.delete(f"/v2/snapshots/{saved['id']}").status_code == 204
    client.delete(at)


def test_what_is_not_made_in_its_time_is_told_as_such_to_who_waits_and_failed_for_who_comes_later(
    client: httpx.Client,
) -> None:
    at = f"/v2/sandboxes/{make(client)['id']}"
    before = client.get("/v2/usage").json()["sandboxes"]
    late = client.post(f"{at}/fork", json={"count": 2, "timeout_s": 0.0001})
    assert (late.status_code, late.json()["error"]) == (408, "CreateTimedOut")
    assert client.get("/v2/usage").json()["sandboxes"] == before, "all or none"
    made = client.post("/v2/sandboxes", params={"wait": GENEROUS_S}, json={"timeout_s": 0.0001}).json()
    assert (made["status"], made["problem"]["error"]) == ("failed", "CreateTimedOut")
    for answer in (
        client.post(f"/v2/sandboxes/{made['id']}/exec", json={"command": "true"}),
        client.get(f"/sandboxes/{made['id']}/wait"),
    ):
        assert (answer.status_code, answer.json()["error"]) == (502, "SandboxCreateFailed")
        assert "was not ready within" in answer.json()["message"]
    for each in (made["id"], at.rpartition("/")[2]):
        client.delete(f"/v2/sandboxes/{each}")


def test_the_service_tells_what_it_can_do_and_what_the_caller_has(client: httpx.Client, sandbox: str) -> None:
    able = client.get("/v2/capabilities").json()
    assert (able["provider"], able["capabilities"]["isolated"]) == ("local", True)
    assert client.get("/v2/usage").json()["sandboxes"] >= 1
    metrics = client.get(f"/v2/sandboxes/{sandbox}/metrics").json()
    assert metrics["uptime"] > 0


def test_an_agent_that_nobody_outside_can_reach_has_no_endpoint_and_a_reason(
    client: httpx.Client, sandbox: str
) -> None:
    found = client.get(f"/v2/sandboxes/{sandbox}/endpoint").json()
    assert found["url"] is None
    assert "service's own machine" in found["reason"]
