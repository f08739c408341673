"""Who may look: administrators, by header or by cookie; Prometheus, by a key of its own; nobody else."""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import pytest
from orchard_env.service.audit.log import AuditLog
from orchard_env.service.audit.settings import AuditSettings
from orchard_env.service.observe.session import COOKIE, StatusSessions
from orchard_env.service.observe.settings import ObserveSettings
from orchard_env.service.seams import ALL_SCOPES, Scope, Tenant
from orchard_env.service.state.memory import MemoryState
from orchard_env.service.tenancy.books import FileBook
from orchard_env.service.tenancy.issuing import create_key, revoke_key
from orchard_env.service.tenancy.key_file import FileKeys
from orchard_env.service.tenancy.keyed import KeyedTenancy
from orchard_env.types.overview import Overview

from ..running import GENEROUS_S, KnownKeys, Running
from .conftest import ADMIN, ALICE, METRICS, keys, make, served


def door(service: Running, path: str, **headers: str) -> int:
    """The status of an answer."""
    return httpx.get(service.url + path, headers=headers, timeout=GENEROUS_S).status_code


@pytest.mark.parametrize("path", ["/metrics", "/status", "/v2/overview"])
def test_only_an_administrators_key_opens(keyed_service: Running, path: str) -> None:
    assert door(keyed_service, path) == 401
    assert door(keyed_service, path, **{"X-API-Key": "wrong"}) == 403
    assert door(keyed_service, path, **{"X-API-Key": ALICE}) == 403
    assert door(keyed_service, path, **{"X-API-Key": ADMIN}) == 200


def test_whoever_is_kept_out_learns_nothing_of_what_others_have(keyed_service: Running) -> None:
    with keyed_service.client(key=ADMIN) as admin:
        name = make(admin)
        assert name in admin.get("/v2/overview").text
    for path in ("/metrics", "/status", "/v2/overview?sandboxes=1000", "/v2/sandboxes"):
        for headers in ({}, {"X-API-Key": ALICE}):
            told = httpx.get(keyed_service.url + path, headers=headers, timeout=GENEROUS_S).text
            assert name not in told
            assert "orchard_env_" not in told
            assert '"ops"' not in told


async def test_a_real_key_opens_and_its_end_closes_the_browsers_session_as_well(tmp_path: Path) -> None:
    book = FileBook(tmp_path / "keys.json")
    boss = await create_key(book, "ops", scopes=(*ALL_SCOPES, Scope.ADMIN))
    alice = await create_key(book, "alice")
    tenancy = KeyedTenancy(FileKeys(tmp_path / "keys.json"), MemoryState())
    with served(tenancy=tenancy) as service:
        for key, status in ((boss, 200), (alice, 403)):
            for path in ("/metrics", "/status", "/v2/overview"):
                assert door(service, path, **{"X-API-Key": key.text}) == status
        answer = entered(service, boss.text)
        cookie = answer.headers["set-cookie"].partition(";")[0]
        assert boss.text not in cookie
        assert door(service, "/status", Cookie=cookie) == 200
        await revoke_key(book, boss.record.id)
        assert door(service, "/status", Cookie=cookie) == 401
        assert door(service, "/metrics", **{"X-API-Key": boss.text}) == 403


def test_prometheus_sends_an_administrators_key_as_it_can(keyed_service: Running) -> None:
    assert door(keyed_service, "/metrics", Authorization=f"Bearer {ADMIN}") == 200
    assert door(keyed_service, "/metrics", Authorization=f"Bearer {ALICE}") == 403
    assert door(keyed_service, "/metrics", Authorization=f"Basic {ADMIN}") == 401
    assert door(keyed_service, f"/metrics?api_key={ADMIN}") == 401


def test_the_metrics_key_opens_the_metrics_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(METRICS + "\n")
    with served(settings=ObserveSettings(metrics_key_file=file), tenancy=keys()) as service:
        bearer = {"Authorization": f"Bearer {METRICS}"}
        assert door(service, "/metrics", **bearer) == 200
        assert door(service, "/metrics", Authorization=f"Bearer {METRICS}x") == 403
        for path in ("/status", "/v2/overview", "/v2/sandboxes"):
            assert door(service, path, **bearer) == 401
            assert door(service, path, **{"X-API-Key": METRICS}) == 403


def entered(service: Running, key: str, **headers: str) -> httpx.Response:
    """The form, sent."""
    return httpx.post(f"{service.url}/status/enter", data={"key": key}, headers=headers, timeout=GENEROUS_S)


def test_a_key_in_the_form_becomes_a_cookie_that_scripts_and_other_sites_cannot_use(
    keyed_service: Running,
) -> None:
    answer = entered(keyed_service, ADMIN)
    assert (answer.status_code, answer.headers["location"]) == (303, "/status")
    cookie = answer.headers["set-cookie"]
    assert ADMIN not in cookie
    for part in ("HttpOnly", "SameSite=Strict", "Path=/status"):
        assert part in cookie
    value = cookie.partition(";")[0]
    assert door(keyed_service, "/status", Cookie=value) == 200
    for path in ("/metrics", "/v2/overview", "/v2/sandboxes"):
        assert door(keyed_service, path, Cookie=value) == 401


def test_the_form_takes_no_other_key_and_nothing_from_another_site(keyed_service: Running) -> None:
    assert [entered(keyed_service, key).status_code for key in (ALICE, "wrong", "")] == [403, 403, 401]
    assert entered(keyed_service, ADMIN, **{"Sec-Fetch-Site": "cross-site"}).status_code == 403
    huge = httpx.post(f"{keyed_service.url}/status/enter", content=b"key=" + b"x" * 100_000)
    assert huge.status_code == 413
    odd = httpx.post(f"{keyed_service.url}/status/enter", content=b"\xff\xfe&" * 50)
    assert odd.status_code == 401
    assert door(keyed_service, "/status/enter") == 405


def test_leaving_ends_it(keyed_service: Running) -> None:
    answer = httpx.post(f"{keyed_service.url}/status/leave")
    assert f"{COOKIE}=; Path=/status; Max-Age=0" in answer.headers["set-cookie"]


class Holders(KnownKeys):
    """Keys that can be taken back."""

    def __init__(self, **tenants: Tenant) -> None:
        super().__init__(**tenants)
        self.held = {tenant.key_id: tenant for tenant in tenants.values()}

    def holder(self, key_id: str) -> Tenant | None:
        """See KnowsKeys."""
        return self.held.get(key_id)


def test_a_cookie_that_was_changed_is_old_or_whose_key_ended_lets_nobody_in() -> None:
    boss = Tenant(name="ops", key_id="a1", scopes=ALL_SCOPES | {Scope.ADMIN})
    tenancy = Holders(key=boss)
    sessions = StatusSessions(b"s" * 32, tenancy, lasts_s=60)
    value = sessions.cookie(boss, secure=True).partition(";")[0].partition("=")[2]
    assert sessions.admits(value)
    until, key_id, mac = value.split(".")
    forged = (
        f"{int(until) + 9}.{key_id}.{mac}",
        f"{until}.b2.{mac}",
        f"{until}.{key_id}.{'0' * 64}",
        "",
        "x",
    )
    assert not any(sessions.admits(one) for one in [*forged, "", "x"])
    assert not StatusSessions(b"t" * 32, tenancy, lasts_s=60).admits(value)
    old = StatusSessions(b"s" * 32, tenancy, lasts_s=-5).cookie(boss, secure=True)
    assert not sessions.admits(old.partition(";")[0].partition("=")[2])
    tenancy.held["a1"] = Tenant(name="ops", key_id="a1")  # an administrator no more
    assert not sessions.admits(value)
    tenancy.held.clear()
    assert not sessions.admits(value)


def test_over_https_the_cookie_never_travels_in_the_clear() -> None:
    boss = Tenant(name="ops", key_id="a1", scopes=ALL_SCOPES | {Scope.ADMIN})
    sessions = StatusSessions(b"s" * 32, keys(), lasts_s=60)
    assert sessions.cookie(boss, secure=True).endswith("; Secure")


def test_who_was_kept_out_stands_in_the_audit_log(tmp_path: Path) -> None:
    log = AuditLog(AuditSettings(path=tmp_path / "audit"))
    with served(tenancy=keys(), audit=log) as service:
        entered(service, "wrong")
        entered(service, ALICE)
    log.close()
    text = (tmp_path / "audit").read_text()
    assert text.count("key.refused") == 2
    assert "b1" in text
    assert ALICE not in text


def test_without_keys_the_page_is_there_for_whoever_reaches_the_service(open_service: Running) -> None:
    answer = httpx.get(f"{open_service.url}/status")
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_the_overview_is_a_document_of_the_api(open_service: Running) -> None:
    with open_service.client() as client:
        told = Overview.model_validate(client.get("/v2/overview?sandboxes=3").json())
        assert "/v2/overview" in client.get("/openapi.json").json()["paths"]
        assert client.get("/v2/overview?sandboxes=-1").status_code == 422
    assert told.provider == "process"
    assert abs(told.at - time.time()) < GENEROUS_S
