"""The HTTP face: paths and verbs of an API server."""

from __future__ import annotations

import asyncio
import base64
import re
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable

import orjson
from aiohttp import web

from orchard_env.kubernetes.resources import Manifest
from orchard_env.testing.cluster.answers import Refused, merged, said
from orchard_env.testing.cluster.pods import Kubelet
from orchard_env.testing.cluster.selecting import Wanted
from orchard_env.testing.cluster.settings import Fault, Settings
from orchard_env.testing.cluster.store import Key, Store
from orchard_env.testing.cluster.watching import Watch

_PATH = re.compile(
    r"^/(?:api/v1|apis/(?P<group>[^/]+)/[^/]+)(?:/namespaces/(?P<ns>[^/]+)(?=/))?"
    r"/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[a-z]+))?$"
)
_NAME = re.compile(r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")
_SNAPSHOTS_MAX = 64


class Server:
    """All state of one stand-in."""

    def __init__(self, settings: Settings, template: Manifest | None = None) -> None:
        self.settings = settings
        self.store = Store(history=settings.history)
        self.kubelet = Kubelet(self.store, settings)
        self.faults: list[Fault] = []
        self.watches: set[Watch] = set()
        self.counts: Counter[str] = Counter()
        self.token = ""
        """The only one accepted; empty: any."""
        self._snapshots: OrderedDict[str, tuple[int, list[Manifest]]] = OrderedDict()
        self._verbs: dict[str, Callable[[Asked], Awaitable[web.StreamResponse]]] = {
            "GET": self._read,
            "POST": self._create,
            "PATCH": self._patch,
            "PUT": self._replace,
            "DELETE": self._delete,
        }
        for name in ("default", "kube-system"):
            self.store.add("namespaces", "", {"metadata": {"name": name}})
        self.kubelet.fill(settings.pods, "default", template)
        self.store.compact()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Any call but those of the control path."""
        if self.settings.answer_s:
            await asyncio.sleep(self.settings.answer_s)
        watch = request.query.get("watch") in {"1", "true"}
        fault = next((one for one in self.faults if one.fits(request.method, request.path_qs, watch)), None)
        try:
            if fault is not None:
                await self._suffer(fault)
            answer = await self._answer(request, watch)
        except Refused as refused:
            answer = refused.answer()
        if fault is not None and fault.kind == "lose" and request.transport is not None:
            request.transport.abort()
        return answer

    async def _suffer(self, fault: Fault) -> None:
        fault.count -= 1
        if fault.kind == "hang":
            await asyncio.sleep(3600)
        if fault.kind == "refuse":
            raise Refused(fault.status, fault.message, retry_after=fault.retry_after)

    async def _answer(self, request: web.Request, watch: bool) -> web.StreamResponse:
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            raise Refused(401, "Unauthorized")
        if request.path == "/version":
            return said({"major": "1", "minor": "33", "gitVersion": "v1.33.0-fake"})
        asked = await Asked.read(request)
        self.counts[f"{'WATCH' if watch else request.method} {asked.plural}"] += 1
        return await (self._watch(asked) if watch else self._verbs[request.method](asked))

    async def _read(self, asked: Asked) -> web.StreamResponse:
        return said(self._object(asked)) if asked.name else self._list(asked)

    def _list(self, asked: Asked) -> web.Response:
        token, query = asked.request.query.get("continue", ""), asked.request.query
        if token:
            if token not in self._snapshots:
                raise Refused(410, "The provided continue parameter is too old to display a consistent list")
            version, left = self._snapshots.pop(token)
        else:
            wanted, every = asked.wanted(), self.store.all(asked.plural)
            version, left = self.store.version, [one for one in every.values() if wanted.fits(one)]
        size = int(query.get("limit", "0")) or len(left)
        about: Manifest = {"resourceVersion": str(version)}
        if len(left) > size:
            about["continue"] = self._keep(version, left[size:])
            about["remainingItemCount"] = len(left) - size
        return said({"kind": "List", "apiVersion": "v1", "metadata": about, "items": left[:size]})

    def _keep(self, version: int, left: list[Manifest]) -> str:
        token = base64.urlsafe_b64encode(f"{version}:{len(left)}:{id(left)}".encode()).decode()
        self._snapshots[token] = (version, left)
        if len(self._snapshots) > _SNAPSHOTS_MAX:
            self._snapshots.popitem(last=False)
        return token

    async def _watch(self, asked: Asked) -> web.StreamResponse:
        query = asked.request.query
        watch = Watch(self.store, asked.plural, asked.wanted(), self.settings.bookmark_s)
        version = int(query.get("resourceVersion", "0"))
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        try:
            watch.begin(version)
        except Refused as refused:
            # A server says so in the stream, not by the status.
            await response.prepare(asked.request)
            await response.write(orjson.dumps({"type": "ERROR", "object": refused.status}) + b"\n")
            return response
        self.watches.add(watch)
        try:
            await response.prepare(asked.request)
            await watch.send(response, float(query.get("timeoutSeconds", "1800")))
        finally:
            self.watches.discard(watch)
        if watch.ended and asked.request.transport is not None:
            asked.request.transport.abort()
        return response

    async def _create(self, asked: Asked) -> web.StreamResponse:
        if asked.subresource == "eviction":
            self.kubelet.deleted(self._object(asked), None)
            return said({"kind": "Status", "status": "Success"}, 201)
        manifest = asked.body
        name = str(manifest["metadata"].get("name", ""))
        if not _NAME.match(name):
            words = f'{asked.kind} "{name}" is invalid: metadata.name: Invalid value: "{name}"'
            raise Refused(
                422, f"{words}: a lowercase RFC 1123 subdomain must consist of lower case characters"
            )
        if asked.namespace and ("", asked.namespace) not in self.store.all("namespaces"):
            raise Refused(404, f'namespaces "{asked.namespace}" not found')
        if (asked.namespace, name) in self.store.all(asked.plural):
            raise Refused(409, f'{asked.plural} "{name}" already exists', reason="AlreadyExists")
        self._fit_quota(asked, name)
        if asked.request.query.get("dryRun"):
            return said(manifest, 201)
        if asked.plural == "pods":
            manifest = {**manifest, "status": {"phase": "Pending", "qosClass": "Burstable"}}
        made = self.store.add(asked.plural, asked.namespace, manifest)
        if asked.plural == "pods":
            self.kubelet.created(made)
        return said(made, 201)

    def _fit_quota(self, asked: Asked, name: str) -> None:
        for (namespace, quota), manifest in self.store.all("resourcequotas").items():
            hard = (manifest.get("spec") or {}).get("hard") or {}
            if namespace != asked.namespace or asked.plural != "pods" or "pods" not in hard:
                continue
            used = sum(1 for key in self.store.all("pods") if key[0] == namespace)
            if used >= int(hard["pods"]):
                told = f"requested: pods=1, used: pods={used}, limited: pods={hard['pods']}"
                raise Refused(403, f'pods "{name}" is forbidden: exceeded quota: {quota}, {told}')

    async def _patch(self, asked: Asked) -> web.StreamResponse:
        old, patch = self._object(asked), asked.body
        if not isinstance(patch, dict):
            raise Refused(415, "only merge patches are understood here")
        self._same_version(asked, old, patch.get("metadata", {}))
        return said(self.store.put(asked.plural, asked.key, merged(old, patch)))

    async def _replace(self, asked: Asked) -> web.StreamResponse:
        old = self._object(asked)
        self._same_version(asked, old, asked.body["metadata"])
        kept = {name: old["metadata"][name] for name in ("uid", "creationTimestamp")}
        about = {**asked.body["metadata"], **kept, "namespace": asked.namespace}
        return said(self.store.put(asked.plural, asked.key, {**asked.body, "metadata": about}))

    async def _delete(self, asked: Asked) -> web.StreamResponse:
        grace = asked.body.get("gracePeriodSeconds")
        if not asked.name:
            wanted = asked.wanted()
            for manifest in [one for one in self.store.all(asked.plural).values() if wanted.fits(one)]:
                self._remove(asked.plural, manifest, grace)
            return said({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": []})
        old = self._object(asked)
        only = asked.body.get("preconditions") or {}
        for field in ("uid", "resourceVersion"):
            if field in only and only[field] != old["metadata"][field]:
                told = f"the {field} in the precondition does not match"
                raise Refused(409, f'Operation cannot be fulfilled on {asked.plural} "{asked.name}": {told}')
        return said(self._remove(asked.plural, old, grace))

    def _remove(self, plural: str, manifest: Manifest, grace: float | None) -> Manifest:
        about = manifest["metadata"]
        if plural == "pods":
            return self.kubelet.deleted(manifest, grace)
        if plural == "namespaces":
            for kind in list(self.store.objects):
                for key in [key for key in self.store.all(kind) if key[0] == about["name"]]:
                    self.store.drop(kind, key)
        return self.store.drop(plural, (about.get("namespace", ""), about["name"])) or manifest

    def _object(self, asked: Asked) -> Manifest:
        found = self.store.all(asked.plural).get(asked.key)
        if found is None:
            raise Refused(404, f'{asked.plural} "{asked.name}" not found')
        return found

    def _same_version(self, asked: Asked, old: Manifest, given: Manifest) -> None:
        version = given.get("resourceVersion")
        if version and version != old["metadata"]["resourceVersion"]:
            told = (
                "the object has been modified; please apply your changes to the latest version and try again"
            )
            raise Refused(409, f'Operation cannot be fulfilled on {asked.plural} "{asked.name}": {told}')


class Asked:
    """A call, read."""

    def __init__(self, request: web.Request, match: re.Match[str], body: Manifest) -> None:
        self.request = request
        self.namespace: str = match["ns"] or ""
        self.plural: str = match["plural"]
        self.name: str = match["name"] or ""
        self.subresource: str = match["sub"] or ""
        self.body = body

    @classmethod
    async def read(cls, request: web.Request) -> Asked:
        match = _PATH.match(request.path)
        if match is None:
            raise Refused(404, "the server could not find the requested resource")
        raw = await request.read()
        try:
            return cls(request, match, orjson.loads(raw) if raw else {})
        except orjson.JSONDecodeError as error:
            raise Refused(400, f"the body is not JSON: {error}") from error

    @property
    def key(self) -> Key:
        return self.namespace, self.name

    @property
    def kind(self) -> str:
        return self.plural.removesuffix("s").capitalize()

    def wanted(self) -> Wanted:
        query = self.request.query
        try:
            return Wanted.read(self.namespace, query.get("labelSelector", ""), query.get("fieldSelector", ""))
        except ValueError as error:
            raise Refused(400, str(error)) from error
