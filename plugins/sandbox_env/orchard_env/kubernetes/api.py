"""A cluster's API server, spoken to in raw JSON over the official client's own transport."""

from __future__ import annotations

import re
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self

import aiohttp
import orjson

from orchard_core import OrchardError
from orchard_env.kubernetes.calls import ApiLimits, Call, Caller
from orchard_env.kubernetes.connection import Connection
from orchard_env.kubernetes.faults import ObjectExists, ObjectMissing, refusal
from orchard_env.kubernetes.resources import (
    ACCESS_REVIEWS,
    PODS,
    REQUEST,
    Manifest,
    Page,
    PatchType,
    Resource,
    Selector,
    WatchEvent,
)

__all__ = ["ApiLimits", "ClusterApi"]

_PROBE_S = 5.0
_LOG_MAX = 64 << 10
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9:._-]{0,252}")
_LINE_MAX = 64 << 20
"""Bytes; no object of a cluster comes near."""


class ClusterApi:
    """One connection pool, one rate limit and one set of credentials, for all callers of a process.

    Every call raises, besides what it names: SandboxUnavailable (no server, no credentials, or a right is
    missing, which is named), ServiceOverloaded (429 or 5xx until the patience ran out), QuotaExceeded,
    SpecRefused (400, 413, 422, or an admission policy; in the server's own words).
    """

    def __init__(self, connection: Connection, caller: Caller, namespace: str) -> None:
        self._connection = connection
        self._caller = caller
        self.namespace = namespace

    @classmethod
    async def open(
        cls,
        *,
        kubeconfig: str | None = None,
        context: str | None = None,
        namespace: str | None = None,
        limits: ApiLimits | None = None,
    ) -> Self:
        """Connect as KUBECONFIG (or the file given) says, or as the pod's service account inside a cluster.

        `namespace` None: that of the context or of the pod, else `default`. Raises ConfigError when the
        extra is missing or no configuration is found, SandboxUnavailable when no server answers there.
        """
        limits = limits or ApiLimits()
        connection = Connection(kubeconfig, context, limits.connections)
        await connection.open()
        api = cls(connection, Caller(connection, limits), namespace or connection.namespace)
        try:
            await api.version()
        except BaseException:
            await api.close()
            raise
        return api

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def create(
        self, kind: Resource, manifest: Manifest, *, namespace: str | None = None, dry_run: bool = False
    ) -> Manifest:
        """Create once, however often it has to be sent. The manifest has a name. Raises ObjectExists."""
        mark = uuid.uuid4().hex
        marked = _marked(manifest, mark)
        name = marked["metadata"]["name"]
        query = {"dryRun": "All"} if dry_run else {}
        try:
            return await self._ask(
                "POST", kind, name, namespace, query=query, body=marked, at_collection=True
            )
        except ObjectExists:
            # An earlier try of this very call may have made it, with its answer lost.
            found = await self.get(kind, name, namespace=namespace)
            if found is None or (found["metadata"].get("annotations") or {}).get(REQUEST) != mark:
                raise
            return found

    async def get(self, kind: Resource, name: str, *, namespace: str | None = None) -> Manifest | None:
        """The object, or None."""
        try:
            return await self._ask("GET", kind, name, namespace)
        except ObjectMissing:
            return None

    async def list(
        self,
        kind: Resource,
        selector: Selector | None = None,
        *,
        namespace: str | None = None,
        patience_s: float | None = None,
    ) -> list[Manifest]:
        """All of them, by pages."""
        found: list[Manifest] = []
        async for page in self.pages(kind, selector, namespace=namespace, patience_s=patience_s):
            found += page.items
        return found

    async def pages(
        self,
        kind: Resource,
        selector: Selector | None = None,
        *,
        namespace: str | None = None,
        size: int = 500,
        resource_version: str = "",
        patience_s: float | None = None,
    ) -> AsyncGenerator[Page, None]:
        """One consistent LIST in pages; `resource_version` "0" takes what the server has in its cache.
        Raises HistoryGone when the server forgot the list between two pages."""
        query = _selected(selector) | {"limit": str(size)}
        if resource_version:
            query["resourceVersion"] = resource_version
        token = ""
        while True:
            asked = {"continue": token, **_selected(selector), "limit": str(size)} if token else query
            answer = await self._ask(
                "GET", kind, "", namespace, query=asked, verb="list", patience_s=patience_s
            )
            about = answer["metadata"]
            token = about.get("continue") or ""
            yield Page(
                items=answer.get("items") or [], resource_version=about["resourceVersion"], token=token
            )
            if not token:
                return

    async def watch(
        self,
        kind: Resource,
        selector: Selector | None = None,
        *,
        resource_version: str,
        namespace: str | None = None,
        silent_s: float = 90.0,
        lasts_s: float = 600.0,
    ) -> AsyncGenerator[WatchEvent, None]:
        """What changes from there on, bookmarks included (a server sends one a minute).

        Ends when the server ends it, the connection breaks, or nothing came for `silent_s`: watch again from
        the last version seen. Raises HistoryGone, and typed errors where the server will not begin.
        """
        query = _selected(selector) | {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(int(lasts_s)),
        }
        call = self._call("GET", kind, "", namespace, query=query, verb="watch")
        response = await self._caller.stream(call, silent_s)
        try:
            yield WatchEvent(type="OPENED", object={})
            async for line in _lines(response):
                event = orjson.loads(line)
                if event["type"] == "ERROR":
                    status = event["object"]
                    raise refusal(int(status.get("code") or 500), status, call.what)
                yield WatchEvent(type=event["type"], object=event["object"])
        except (aiohttp.ClientError, TimeoutError, OSError, orjson.JSONDecodeError):
            return  # Torn in the middle: what was seen so far is whole.
        finally:
            response.close()

    async def patch(
        self,
        kind: Resource,
        name: str,
        patch: Manifest | Sequence[Manifest],
        *,
        kind_of_patch: PatchType = PatchType.MERGE,
        subresource: str = "",
        namespace: str | None = None,
    ) -> Manifest:
        """Change an object; a `metadata.resourceVersion` in a merge patch makes it conditional.
        Raises ObjectMissing, ObjectChanged."""
        body = list(patch) if kind_of_patch is PatchType.JSON else patch
        return await self._ask(
            "PATCH",
            kind,
            name,
            namespace,
            subresource=subresource,
            body=body,
            content_type=kind_of_patch.value,
            repeatable=kind_of_patch is PatchType.MERGE,
        )

    async def replace(
        self, kind: Resource, name: str, manifest: Manifest, *, namespace: str | None = None
    ) -> Manifest:
        """PUT; conditional if the manifest has a resourceVersion. Raises ObjectMissing, ObjectChanged."""
        return await self._ask("PUT", kind, name, namespace, body=manifest)

    async def delete(
        self,
        kind: Resource,
        name: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_s: int | None = None,
        namespace: str | None = None,
    ) -> bool:
        """False when there was nothing to delete. Raises ObjectChanged when it is not that uid or version."""
        body = _delete_options(grace_s)
        only = {"uid": uid, "resourceVersion": resource_version}
        if given := {field: value for field, value in only.items() if value is not None}:
            body["preconditions"] = given
        try:
            await self._ask("DELETE", kind, name, namespace, body=body)
        except ObjectMissing:
            return False
        return True

    async def delete_all(
        self, kind: Resource, selector: Selector, *, grace_s: int | None = None, namespace: str | None = None
    ) -> None:
        """Delete a whole selection in one call."""
        query, body = _selected(selector), _delete_options(grace_s)
        await self._ask("DELETE", kind, "", namespace, query=query, body=body, verb="deletecollection")

    async def log(
        self, pod: str, *, container: str = "", lines: int = 20, namespace: str | None = None
    ) -> str:
        """The last lines that a container wrote, 64 KiB of them at most; empty where they cannot be had."""
        query = {"tailLines": str(lines), **({"container": container} if container else {})}
        call = self._call("GET", PODS, pod, namespace, subresource="log", query=query)
        try:
            response = await self._caller.stream(call, _PROBE_S)
            try:
                held = b""
                async for chunk in response.content.iter_any():
                    held = (held + chunk)[-_LOG_MAX:]
                return held.decode("utf-8", "replace")
            finally:
                response.close()
        except (OrchardError, aiohttp.ClientError, TimeoutError, OSError):
            return ""

    async def evict(self, pod: str, *, namespace: str | None = None) -> None:
        """Ask for a pod's eviction, as a drain of its node does. Raises ObjectMissing."""
        where = namespace or self.namespace
        # The group that knows evictions in a stable form came with 1.22.
        stable = await self.version() >= (1, 22)
        body = {
            "apiVersion": "policy/v1" if stable else "policy/v1beta1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": where},
        }
        pods = Resource(group="/api/v1", plural="pods")
        await self._ask("POST", pods, pod, where, subresource="eviction", body=body, verb="evict")

    async def allowed(
        self, verb: str, kind: Resource, *, subresource: str = "", namespace: str | None = None
    ) -> bool:
        """May these credentials do that? (SelfSubjectAccessReview, a question that changes nothing.)"""
        asked = {
            "verb": verb,
            "group": kind.group.split("/")[2] if kind.group.startswith("/apis/") else "",
            "resource": kind.plural,
            "subresource": subresource,
            "namespace": (namespace or self.namespace) if kind.namespaced else "",
        }
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": asked},
        }
        answer = await self._ask("POST", ACCESS_REVIEWS, "", None, body=body)
        return bool(answer["status"].get("allowed"))

    async def version(self) -> tuple[int, int]:
        """The server's version, such as (1, 31)."""
        call = Call(
            method="GET",
            path="/version",
            what="ask for the version",
            counted="get version",
            patience_s=self._caller.patience(_PROBE_S),
        )
        answer = await self._caller.ask(call)
        return int(answer["major"]), int("".join(filter(str.isdigit, answer["minor"])))

    def now(self) -> float:
        """The server's clock, seconds since the epoch, to a second: for what its objects say of times."""
        return self._caller.now()

    @property
    def calls(self) -> Mapping[str, int]:
        """Requests sent so far, repeats included, as `VERB plural`."""
        return MappingProxyType(self._caller.counts)

    @property
    def rate(self) -> float:
        """Calls a second that are let through at present: less than the limit after the server refused."""
        return self._caller.rate.per_s

    async def close(self) -> None:
        """Close the connections. Watches end."""
        await self._connection.close()

    async def _ask(
        self, method: str, kind: Resource, name: str, namespace: str | None, **options: Any
    ) -> Manifest:
        return await self._caller.ask(self._call(method, kind, name, namespace, **options))

    def _call(
        self,
        method: str,
        kind: Resource,
        name: str,
        namespace: str | None,
        *,
        subresource: str = "",
        verb: str = "",
        at_collection: bool = False,
        **options: Any,
    ) -> Call:
        of_one = bool(name) or not (verb or method == "POST")
        verb = verb or _VERBS[method]
        if of_one and not at_collection and not _NAME.fullmatch(name):
            # It would be read as another path, such as that of all objects.
            raise ObjectMissing(f"no {kind.plural} can be named {name[:80]!r}")
        plural = f"{kind.plural}/{subresource}" if subresource else kind.plural
        return Call(
            method=method,
            path=kind.path(namespace or self.namespace, "" if at_collection else name, subresource),
            what=f"{verb} {plural} {name}".rstrip(),
            counted=f"{verb} {plural}",
            **options,
        )


_VERBS = {"GET": "get", "POST": "create", "PATCH": "patch", "PUT": "replace", "DELETE": "delete"}


def _marked(manifest: Manifest, mark: str) -> Manifest:
    about = manifest["metadata"]
    notes = {**(about.get("annotations") or {}), REQUEST: mark}
    return {**manifest, "metadata": {**about, "annotations": notes}}


def _selected(selector: Selector | None) -> dict[str, str]:
    if selector is None:
        return {}
    named = {"labelSelector": selector.labels, "fieldSelector": selector.fields}
    return {name: text for name, text in named.items() if text}


def _delete_options(grace_s: int | None) -> Manifest:
    body: Manifest = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
    return body if grace_s is None else {**body, "gracePeriodSeconds": grace_s}


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """aiohttp's own `readline` ends at its buffer's size."""
    held = b""
    async for chunk in response.content.iter_any():
        *lines, held = (held + chunk).split(b"\n")
        for line in lines:
            yield line
        if len(held) > _LINE_MAX:
            return
