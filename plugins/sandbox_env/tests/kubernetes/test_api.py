"""Calls to an API server that is slow, overloaded, forgetful, or says no."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import pytest
import yaml
from orchard_env.kubernetes.api import ApiLimits, ClusterApi
from orchard_env.kubernetes.faults import HistoryGone, ObjectChanged, ObjectExists, refusal
from orchard_env.kubernetes.rate import RateLimit
from orchard_env.kubernetes.resources import CONFIG_MAPS, Manifest, PatchType
from orchard_env.testing.cluster import FakeCluster, Fault

from orchard_core import (
    ConfigError,
    OrchardError,
    QuotaExceeded,
    SandboxUnavailable,
    ServiceOverloaded,
    SpecRefused,
)

from .clusters import IMPATIENT, standin

NOTE: Manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}


class TestCallsAgain:
    async def test_a_create_whose_answer_was_lost_is_made_once_and_is_ours(self, tmp_path: Path) -> None:
        async with standin(tmp_path) as (cluster, api):
            cluster.suffer(Fault(kind="lose", method="POST"))
            made = await api.create(CONFIG_MAPS, NOTE)
            assert len(await api.list(CONFIG_MAPS)) == 1
            assert made["metadata"]["uid"] == (await api.list(CONFIG_MAPS))[0]["metadata"]["uid"]
            assert api.calls["create configmaps"] == 2

    async def test_a_strangers_object_is_not_taken_for_ours(self, tmp_path: Path) -> None:
        async with standin(tmp_path) as (cluster, api):
            await api.create(CONFIG_MAPS, NOTE)
            cluster.suffer(Fault(status=500, method="POST"))
            with pytest.raises(ObjectExists):
                await api.create(CONFIG_MAPS, NOTE)

    async def test_a_create_outrun_in_the_count_of_a_quota_is_sent_again(self, tmp_path: Path) -> None:
        async with standin(tmp_path) as (cluster, api):
            words = 'Operation cannot be fulfilled on resourcequotas "few": the object has been modified'
            cluster.suffer(Fault(status=409, method="POST", message=words, count=2))
            await api.create(CONFIG_MAPS, NOTE)
            assert api.calls["create configmaps"] == 3

    async def test_a_create_before_a_new_quota_is_counted_is_sent_again(self, tmp_path: Path) -> None:
        async with standin(tmp_path) as (cluster, api):
            words = 'pods "a" is forbidden: status unknown for quota: few, resources: pods'
            cluster.suffer(Fault(status=403, method="POST", message=words))
            await api.create(CONFIG_MAPS, NOTE)
            assert api.calls["create configmaps"] == 2

    @pytest.mark.parametrize("fault", [Fault(status=500), Fault(status=503), Fault(kind="lose")])
    async def test_reads_and_deletes_are_sent_again(self, tmp_path: Path, fault: Fault) -> None:
        async with standin(tmp_path) as (cluster, api):
            await api.create(CONFIG_MAPS, NOTE)
            cluster.suffer(Fault(kind=fault.kind, status=fault.status, method="GET", count=2))
            assert await api.get(CONFIG_MAPS, "a") is not None
            cluster.suffer(Fault(kind=fault.kind, status=fault.status, method="DELETE"))
            await api.delete(CONFIG_MAPS, "a")
            assert await api.get(CONFIG_MAPS, "a") is None

    async def test_a_call_that_hangs_is_given_up_and_sent_again(self, tmp_path: Path) -> None:
        async with standin(tmp_path) as (cluster, api):
            cluster.suffer(Fault(kind="hang", method="POST"))
            await api.create(CONFIG_MAPS, NOTE)
            assert await api.get(CONFIG_MAPS, "a") is not None

    async def test_what_does_harm_when_it_is_done_twice_is_sent_once(self, tmp_path: Path) -> None:
        async with standin(tmp_path) as (cluster, api):
            await api.create(CONFIG_MAPS, NOTE)
            cluster.suffer(Fault(kind="lose", method="PATCH"))
            with pytest.raises(SandboxUnavailable, match="wanted to patch configmaps a"):
                await api.patch(CONFIG_MAPS, "a", [{"op": "add"}], kind_of_patch=PatchType.JSON)
            assert api.calls["patch configmaps"] == 1

    async def test_a_conditional_change_that_may_be_its_own_says_so(self, tmp_path: Path) -> None:
        async with standin(tmp_path) as (cluster, api):
            made = await api.create(CONFIG_MAPS, NOTE)
            version = {"resourceVersion": made["metadata"]["resourceVersion"], "labels": {"mine": "yes"}}
            cluster.suffer(Fault(kind="lose", method="PATCH"))
            with pytest.raises(ObjectChanged) as lost:
                await api.patch(CONFIG_MAPS, "a", {"metadata": version})
            assert lost.value.unsure
            with pytest.raises(ObjectChanged) as late:
                await api.patch(CONFIG_MAPS, "a", {"metadata": version})
            assert not late.value.unsure

    async def test_a_server_that_is_away_for_a_while_costs_only_time(self, tmp_path: Path) -> None:
        limits = ApiLimits(per_s=10_000, burst=10_000, call_s=1.0, patience_s=60.0)
        async with standin(tmp_path, limits=limits) as (cluster, api):
            await cluster.deaf()
            calls = asyncio.gather(*(api.create(CONFIG_MAPS, _named(f"n{i}")) for i in range(20)))
            while api.calls["create configmaps"] < 40:
                await asyncio.sleep(0.01)
            await cluster.listen()
            await calls
            assert len(await api.list(CONFIG_MAPS)) == 20


class TestTooMany:
    async def test_a_refusal_for_load_is_waited_out_and_slows_all_calls(self, tmp_path: Path) -> None:
        async with standin(tmp_path) as (cluster, api):
            cluster.suffer(Fault(status=429, retry_after=1, count=1))
            began = time.monotonic()
            await api.get(CONFIG_MAPS, "a")
            assert time.monotonic() - began >= 1
            assert api.rate <= IMPATIENT.per_s * 0.6

    async def test_a_pause_longer_than_the_patience_is_told_to_the_caller(self, tmp_path: Path) -> None:
        async with standin(tmp_path) as (cluster, api):
            cluster.suffer(Fault(status=429, retry_after=40))
            with pytest.raises(ServiceOverloaded) as told:
                await api.get(CONFIG_MAPS, "a")
            assert told.value.retry_after_s == 40

    async def test_no_more_calls_go_than_the_limit_allows(self) -> None:
        rate = RateLimit(per_s=100, burst=5)
        began = time.monotonic()
        await asyncio.gather(*(rate.turn() for _ in range(35)))
        assert time.monotonic() - began >= 0.29

    async def test_those_that_wait_when_a_refusal_comes_wait_behind_its_pause(self) -> None:
        rate = RateLimit(per_s=100, burst=1)
        began = time.monotonic()
        turns = asyncio.gather(*(rate.turn() for _ in range(10)))
        await asyncio.sleep(0)
        rate.refused(0.5)
        await turns
        assert time.monotonic() - began >= 0.5
        for _ in range(200):
            rate.accepted()
        assert rate.per_s == pytest.approx(100)


class TestSaysNo:
    @pytest.mark.parametrize(
        ("status", "said", "error", "words"),
        [
            (401, {"message": "Unauthorized"}, SandboxUnavailable, "does not accept these credentials"),
            (
                403,
                {
                    "message": 'pods is forbidden: User "system:serviceaccount:a:b" cannot create resource '
                    '"pods" in API group "" in the namespace "boxes"'
                },
                SandboxUnavailable,
                "system:serviceaccount:a:b lacks the right to create pods in the namespace boxes",
            ),
            (
                403,
                {"message": 'pods "a" is forbidden: exceeded quota: few, requested: pods=1, used: pods=9'},
                QuotaExceeded,
                "exceeded quota: few",
            ),
            (
                403,
                {"message": 'pods "a" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot'},
                SpecRefused,
                "runAsNonRoot",
            ),
            (
                403,
                {"message": 'pods "a" is forbidden: unable to create: namespace x is being terminated'},
                SandboxUnavailable,
                "terminated",
            ),
            (
                400,
                {"message": 'admission webhook "policy" denied the request: no latest tags'},
                SpecRefused,
                "no latest tags",
            ),
            (
                422,
                {"message": "Pod is invalid: spec.containers[0].image: Required value"},
                SpecRefused,
                "image",
            ),
            (409, {"reason": "AlreadyExists", "message": "already"}, ObjectExists, "already"),
            (409, {"reason": "Conflict", "message": "modified"}, ObjectChanged, "modified"),
            (410, {"message": "too old"}, HistoryGone, "too old"),
            (503, {"message": "apiserver is shutting down"}, ServiceOverloaded, "shutting down"),
        ],
    )
    def test_each_refusal_has_its_own_error(
        self, status: int, said: dict[str, str], error: type[OrchardError], words: str
    ) -> None:
        found = refusal(status, said, "create pods a")
        assert type(found) is error
        assert words in str(found)

    def test_a_proxys_own_page_is_shown_in_part(self) -> None:
        found = refusal(502, b"<html>bad gateway</html>" + b" " * 10_000, "list pods")
        assert "bad gateway" in str(found)
        assert len(str(found)) < 1000

    async def test_no_server_is_said_at_once(self, tmp_path: Path) -> None:
        async with FakeCluster() as cluster:
            kubeconfig = cluster.write_kubeconfig(tmp_path / "kubeconfig")
        limits = ApiLimits(patience_s=0.5)
        with pytest.raises(SandboxUnavailable, match="API server does not answer"):
            await ClusterApi.open(kubeconfig=str(kubeconfig), limits=limits)

    async def test_no_configuration_is_an_error_of_the_user(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="KUBECONFIG"):
            await ClusterApi.open(kubeconfig=str(tmp_path / "nothing"))
        (tmp_path / "broken").write_text("clusters: 7")
        with pytest.raises(ConfigError):
            await ClusterApi.open(kubeconfig=str(tmp_path / "broken"))


async def test_a_plugins_token_that_has_expired_is_fetched_anew(tmp_path: Path) -> None:
    async with FakeCluster() as cluster:
        plugin, token = tmp_path / "plugin.py", tmp_path / "token"
        plugin.write_text(
            "import json, pathlib\n"
            f"token = pathlib.Path({str(token)!r}).read_text()\n"
            "kind = {'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential'}\n"
            "print(json.dumps(kind | {'status': {'token': token}}))\n"
        )
        command = {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}
        user = {"exec": {**command, "command": sys.executable, "args": [str(plugin)]}}
        config = {**cluster.kubeconfig(), "users": [{"name": "fake", "user": user}]}
        (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
        cluster.server.token = "first"
        token.write_text("first")
        async with await ClusterApi.open(kubeconfig=str(tmp_path / "kubeconfig")) as api:
            assert await api.list(CONFIG_MAPS) == []
            cluster.server.token = "second"
            token.write_text("second")
            with pytest.raises(SandboxUnavailable, match="credentials"):
                await anext(api.watch(CONFIG_MAPS, resource_version="9"))
            assert (await anext(api.watch(CONFIG_MAPS, resource_version="9"))).type == "OPENED"
            assert await api.list(CONFIG_MAPS) == []


def _named(name: str) -> Manifest:
    return {**NOTE, "metadata": {"name": name}}
