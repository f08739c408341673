"""The published contract, call by call."""

from __future__ import annotations

import base64

import httpx
import pytest

from .running import Running

SANDBOX_FIELDS = {"sandbox_id", "namespace", "image", "block_network", "cpu", "memory", "timeout", "status"}
JOB_FIELDS = {
    "job_id", "sandbox_id", "command", "status", "stdout", "stderr", "exit_code", "created_at", "started_at",
    "completed_at", "error",
}  # fmt: skip


def test_banner_and_health_need_no_key(service: Running) -> None:
    with service.client(key=None) as anybody:
        assert anybody.get("/").status_code == 200
        assert anybody.get("/health").json()["status"] in ("ok", "healthy")


def test_create_answers_before_the_sandbox_is_ready(client: httpx.Client) -> None:
    asked = {"image": "host", "cpu": "500m", "memory": "1Gi", "timeout": 60, "unknown": "passed over"}
    answer = client.post("/sandboxes", json=asked)
    made = answer.json()
    assert answer.status_code == 200
    assert made.keys() >= SANDBOX_FIELDS
    assert made["status"] == "pending"
    told = {name: made[name] for name in ("image", "cpu", "memory", "timeout", "block_network")}
    assert told == {"image": "host", "cpu": "500m", "memory": "1Gi", "timeout": 60, "block_network": True}
    ready = client.get(f"/sandboxes/{made['sandbox_id']}/wait", params={"timeout": 60})
    assert ready.json() == made | {"status": "ready"}
    assert client.get(f"/sandboxes/{made['sandbox_id']}").json() == ready.json()
    gone = client.delete(f"/sandboxes/{made['sandbox_id']}")
    assert gone.json() == {"status": "deleted", "sandbox_id": made["sandbox_id"]}
    assert client.get(f"/sandboxes/{made['sandbox_id']}").status_code == 404


def test_a_sandbox_may_be_named_and_its_name_is_taken_then(client: httpx.Client) -> None:
    first = client.post("/sandboxes", json={"image": "host", "sandbox_id": "mine"})
    assert first.json()["sandbox_id"] == "mine"
    again = client.post("/sandboxes", json={"image": "host", "sandbox_id": "mine"})
    assert (again.status_code, again.json()["error"]) == (409, "SandboxExists")
    client.delete("/sandboxes/mine").raise_for_status()
    anew = client.post("/sandboxes", json={"image": "host", "sandbox_id": "mine"})
    assert anew.status_code == 200
    client.delete("/sandboxes/mine").raise_for_status()


def test_a_sandbox_may_be_deleted_while_it_is_made(client: httpx.Client) -> None:
    made = client.post("/sandboxes", json={"image": "host"}).json()["sandbox_id"]
    assert client.delete(f"/sandboxes/{made}").json()["status"] == "deleted"
    assert client.get(f"/sandboxes/{made}/wait").status_code == 404


def test_a_command_for_a_sandbox_that_is_still_made_waits_for_it(client: httpx.Client) -> None:
    made = client.post("/sandboxes", json={"image": "host"}).json()["sandbox_id"]
    job = client.post(f"/sandboxes/{made}/exec", json={"command": "echo ready", "wait": True}).json()
    assert job["stdout"] == "ready\n"
    client.delete(f"/sandboxes/{made}").raise_for_status()


def test_a_heartbeat_is_heard(client: httpx.Client, sandbox: str) -> None:
    beaten = client.post(f"/sandboxes/{sandbox}/heartbeat")
    assert beaten.json() == {"status": "ok", "sandbox_id": sandbox}


def test_jobs_have_every_field(client: httpx.Client, sandbox: str) -> None:
    job = client.post(f"/sandboxes/{sandbox}/exec", json={"command": "true", "wait": True}).json()
    assert job.keys() >= JOB_FIELDS


def test_files_go_up_and_come_down(client: httpx.Client, sandbox: str) -> None:
    data = bytes(range(256)) * 10
    body = {"path": "/workspace/a dir/b\n'c", "content": base64.b64encode(data).decode()}
    up = client.post(f"/sandboxes/{sandbox}/files", json=body)
    assert up.json() == {"success": True, "path": body["path"], "size": len(data)}
    down = client.get(f"/sandboxes/{sandbox}/files", params={"path": body["path"]}).json()
    assert base64.b64decode(down["content"]) == data
    assert (down["path"], down["size"]) == (body["path"], len(data))


def test_a_listing_shows_files_and_directories(client: httpx.Client, sandbox: str) -> None:
    make = (
        "rm -rf l; mkdir -p l/d; printf abc > l/f; ln -s d l/to-d; ln -s nowhere l/broken; "
        r"""touch "l/$(printf 'odd\377')" "l/$(printf 'two\nlines')" """
    )
    client.post(f"/sandboxes/{sandbox}/exec", json={"command": make, "wait": True}).raise_for_status()
    told = client.get(f"/sandboxes/{sandbox}/files/list", params={"path": "/workspace/l"}).json()
    found = {item["name"]: item for item in told["files"]}
    assert told["path"] == "/workspace/l"
    kinds = {name: item["type"] for name, item in found.items()}
    directories = {"d": "directory", "to-d": "directory"}
    assert kinds == directories | dict.fromkeys(("f", "broken", "odd\ufffd", "two\nlines"), "file")
    assert found["f"]["size"] == 3
    assert found["f"]["modified"].endswith("+00:00")
    assert base64.b64decode(found["odd�"]["name_b64"]) == b"odd\xff"


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        ("/not/there", 404, "FileMissing"),
        ("/etc", 422, "IsADirectory"),
        ("bad\0name", 422, "RequestInvalid"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_typed_refusal(
    client: httpx.Client, sandbox: str, path: str, status: int, error: str
) -> None:
    answer = client.get(f"/sandboxes/{sandbox}/files", params={"path": path})
    assert (answer.status_code, answer.json()["error"]) == (status, error)


PATCH = """\
diff --git a/hello.txt b/hello.txt
--- a/hello.txt
+++ b/hello.txt
@@ -1 +1 @@
-hello
+goodbye
"""


def test_a_patch_is_applied_inside(client: httpx.Client, sandbox: str) -> None:
    body = {"path": "p/hello.txt", "content": base64.b64encode(b"hello\n").decode()}
    client.post(f"/sandboxes/{sandbox}/files", json=body).raise_for_status()
    patched = client.post(
        f"/sandboxes/{sandbox}/apply_patch", json={"patch": PATCH, "cwd": "/workspace/p"}
    ).json()
    assert patched.keys() == {"success", "stdout", "stderr", "exit_code", "error"}
    assert (patched["success"], patched["exit_code"], patched["error"]) == (True, 0, None)
    content = client.get(f"/sandboxes/{sandbox}/files", params={"path": "p/hello.txt"}).json()["content"]
    assert base64.b64decode(content) == b"goodbye\n"


def test_a_patch_that_does_not_fit_changes_nothing_and_says_why(client: httpx.Client, sandbox: str) -> None:
    body = {"path": "q/hello.txt", "content": base64.b64encode(b"other\n").decode()}
    client.post(f"/sandboxes/{sandbox}/files", json=body).raise_for_status()
    patched = client.post(
        f"/sandboxes/{sandbox}/apply_patch", json={"patch": PATCH, "cwd": "/workspace/q"}
    ).json()
    assert not patched["success"]
    assert patched["exit_code"] != 0
    assert patched["error"]
    content = client.get(f"/sandboxes/{sandbox}/files", params={"path": "q/hello.txt"}).json()["content"]
    assert base64.b64decode(content) == b"other\n"


def test_resources_are_told_in_total_used_and_free(client: httpx.Client) -> None:
    told = client.get("/resources").json()
    assert told["nodes"] == 1
    for name in ("cpu", "memory"):
        assert told[name]["total"] > 0
        assert told[name]["used"] + told[name]["free"] == pytest.approx(told[name]["total"])


def test_the_document_describes_every_call_of_the_contract(client: httpx.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    calls = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    one = "/sandboxes/{sandbox_id}"
    assert calls >= {
        ("GET", "/"), ("GET", "/health"), ("GET", "/resources"), ("POST", "/sandboxes"), ("GET", one),
        ("GET", one + "/wait"), ("POST", one + "/heartbeat"), ("DELETE", one), ("POST", one + "/exec"),
        ("GET", "/jobs/{job_id}"), ("GET", "/jobs/{job_id}/wait"), ("POST", one + "/apply_patch"),
        ("POST", one + "/files"), ("GET", one + "/files"), ("GET", one + "/files/list"),
    }  # fmt: skip
    created = paths["/sandboxes"]["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    assert created == "#/components/schemas/CreateSandbox"
