"""The service's `/v2` as the provider uses it: typed bodies in and out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import quote

from pydantic import ValidationError

from orchard_core import (
    AgentEndpoint,
    OrchardError,
    Record,
    SandboxCreateFailed,
    SandboxGone,
    SandboxSpec,
    SandboxUnavailable,
    Snapshot,
    SnapshotMissing,
)
from orchard_env.client.address import ServiceAddress
from orchard_env.client.http import ServiceHttp
from orchard_env.client.problems import NoSuchCall, error_named
from orchard_env.types.v2 import (
    EndpointView,
    Problem,
    SandboxList,
    SandboxRequest,
    SandboxView,
    ServiceView,
)

_CALL_S = 120.0
_WAIT_S = 30.0
_ASK_S = 8.0
_SLOW_S = 900.0
_PAGE = 1000

_R = TypeVar("_R", bound=Record)


class RemoteService:
    """One service. All methods raise SandboxConnectionLost, ServiceOverloaded and AgentRefused besides what
    they say."""

    def __init__(self, address: ServiceAddress) -> None:
        self._address = address
        self._http = ServiceHttp(address, timeout_s=_CALL_S)

    @property
    def url(self) -> str:
        """Where it is."""
        return self._address.url

    async def view(self) -> ServiceView:
        """What it can do. Raises SandboxUnavailable for what is no service of ours."""
        try:
            said = await self._http.json("GET", "/v2/capabilities")
        except (NoSuchCall, SandboxGone) as error:
            raise SandboxUnavailable(
                f"{self.url} has no /v2: it is no Orchard Env service, or an old one",
                hint="the provider remote needs `orchard serve`; orchard_env.SandboxClient speaks to others",
            ) from error
        return _read(ServiceView, said, self.url)

    async def create(self, request: SandboxRequest, key: str) -> SandboxView:
        """A pending sandbox. The same key gives the same sandbox, however often it is sent. Raises
        SandboxExists, SandboxUnsupported, SandboxCreateFailed."""
        said = await self._http.json(
            "POST",
            "/v2/sandboxes",
            body=request.model_dump(mode="json"),
            headers={"Idempotency-Key": key},
            repeat=True,
        )
        return _read(SandboxView, said, self.url)

    async def ready(self, sandbox_id: str, limit_s: float) -> SandboxView:
        """When it is. Raises SandboxCreateFailed or what else kept it from coming up."""
        deadline = time.monotonic() + limit_s
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise SandboxCreateFailed(
                    f"sandbox {sandbox_id} was not ready within {limit_s:g} s",
                    hint="raise the provider's option create_s, or look at the service's cluster",
                )
            view = await self.get(sandbox_id, wait_s=min(_WAIT_S, left))
            if view.status == "ready":
                return view
            if view.status == "failed":
                raise fault_of(view) or SandboxCreateFailed(f"sandbox {sandbox_id} failed without a reason")

    async def get(self, sandbox_id: str, *, wait_s: float = 0.0) -> SandboxView:
        """How it stands. Raises SandboxGone when there is none."""
        said = await self._http.json(
            "GET",
            _path(sandbox_id),
            params={"wait": f"{wait_s:.3f}"} if wait_s else None,
            repeat=True,
            timeout_s=wait_s + _CALL_S,
        )
        return _read(SandboxView, said, self.url)

    async def list(self, labels: Mapping[str, str]) -> list[SandboxView]:
        """All that carry the labels, whoever made them. Never a part of them."""
        found: list[SandboxView] = []
        cursor: str | None = None
        while True:
            params: dict[str, Any] = {
                "label": [f"{name}={value}" for name, value in labels.items()],
                "limit": _PAGE,
                **({"cursor": cursor} if cursor else {}),
            }
            said = await self._http.json("GET", "/v2/sandboxes", params=params, repeat=True)
            page = _read(SandboxList, said, self.url)
            found.extend(page.sandboxes)
            cursor = page.next
            if cursor is None:
                return found

    async def delete(self, sandbox_id: str) -> None:
        """It is gone afterwards."""
        with suppress(SandboxGone):
            await self._http.json("DELETE", _path(sandbox_id), repeat=True)

    async def beat(self, sandbox_id: str) -> None:
        """Say that its driver lives. Raises SandboxGone."""
        await self._http.json("POST", f"{_path(sandbox_id)}/heartbeat", repeat=True, timeout_s=_WAIT_S)

    async def reset(self, sandbox_id: str) -> None:
        """Everything inside was killed, and a new agent answers. Raises SandboxGone, SandboxCreateFailed."""
        await self._http.json("POST", f"{_path(sandbox_id)}/reset", timeout_s=_SLOW_S)

    async def endpoint(self, sandbox_id: str) -> EndpointView:
        """The agent's own address with a token of its own. Raises SandboxGone."""
        said = await self._http.json("GET", f"{_path(sandbox_id)}/endpoint", repeat=True)
        return _read(EndpointView, said, self.url)

    async def withdraw(self, sandbox_id: str, token: str) -> None:
        """End a token that `endpoint` gave, and what was started with it."""
        body = {"url": None, "token": token, "sandbox_id": sandbox_id}
        await self._http.json("DELETE", f"{_path(sandbox_id)}/endpoint", body=body, repeat=True)

    async def snapshot(self, sandbox_id: str) -> Snapshot:
        """Raises SandboxGone, DiskFull."""
        said = await self._http.json("POST", f"{_path(sandbox_id)}/snapshot", timeout_s=_SLOW_S)
        return _read(Snapshot, said, self.url)

    async def discard(self, snapshot_id: str) -> None:
        """Fine when it is gone."""
        with suppress(SnapshotMissing, SandboxGone):
            await self._http.json("DELETE", f"/v2/snapshots/{quote(snapshot_id, safe='')}", repeat=True)

    async def why(self, sandbox_id: str) -> SandboxGone | None:
        """Why it is dead; None when it lives, or when nobody can tell. Never raises, and takes seconds at
        most."""
        try:
            said = await self._http.json("GET", _path(sandbox_id), timeout_s=_ASK_S)
            fault = fault_of(_read(SandboxView, said, self.url))
        except SandboxGone as error:
            return error
        except OrchardError:
            return None
        return fault if fault is None or isinstance(fault, SandboxGone) else SandboxGone(fault.message)

    def through(self, sandbox_id: str) -> AgentEndpoint:
        """The way to its agent by way of the service."""
        return AgentEndpoint(
            url=f"{self.url}{_path(sandbox_id)}/agent",
            token="",
            sandbox_id=sandbox_id,
            headers=self._address.headers,
            ca_file=self._address.ca_file,
        )

    async def close(self) -> None:
        """Drop the connections."""
        await self._http.close()


def request_for(
    sandbox_id: str, spec: SandboxSpec, labels: Mapping[str, str], *, timeout_s: float
) -> SandboxRequest:
    """Files are left out: they are written when the sandbox stands, streamed."""
    named = {"name": sandbox_id, "files": (), "labels": {**spec.labels, **labels}}
    return SandboxRequest(spec=spec.model_copy(update=named), timeout_s=timeout_s)


def fault_of(view: SandboxView) -> OrchardError | None:
    """Why a sandbox failed or ended; None while it is well."""
    if view.status != "failed":
        return None
    said = view.problem or Problem(message=f"sandbox {view.id} failed, and the service does not say why")
    return error_named(said.error, said.message, hint=said.hint)


def _path(sandbox_id: str) -> str:
    return f"/v2/sandboxes/{quote(sandbox_id, safe='')}"


def _read(kind: type[_R], said: dict[str, Any], url: str) -> _R:
    try:
        return kind.model_validate(said)
    except ValidationError as error:
        raise SandboxUnavailable(
            f"{url} answered what is no {kind.__name__}: {error.errors()[0]['msg']}",
            hint="client and service should be of one version of orchard-env",
        ) from error
