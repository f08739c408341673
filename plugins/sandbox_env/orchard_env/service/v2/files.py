"""Files and directory trees, streamed."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from orchard_core import AgentClient, NotAnAgent
from orchard_env.service.agent_words import agent_words
from orchard_env.service.http import caller
from orchard_env.service.noting import note
from orchard_env.service.passthrough_calls import find_call
from orchard_env.service.seams import Scope, Work
from orchard_env.service.v2.base import Routes, SandboxId
from orchard_env.service.v2.carried import CarriedResponse
from orchard_env.service.v2.file_docs import ARCHIVE, CONTENT, DONE, Mode, PathQuery, User, body
from orchard_env.service.v2.file_view import file_view
from orchard_env.service.v2.query import agent_target, flag, path_in
from orchard_env.service.v2.refusals import REFUSALS
from orchard_env.service.v2.route import JsonRoute
from orchard_env.types.v2 import FileList, FileView

_LINE_MAX = 64 * 1024
Most = Annotated[int, Query(ge=1, le=100_000, description="Entries to tell at most.")]
Range = Annotated[
    str | None,
    Header(alias="Range", max_length=64, description="`bytes=FIRST-LAST`, `bytes=FIRST-` or `bytes=-COUNT`."),
]


class FileRoutes(Routes):
    """`/v2/sandboxes/{sandbox_id}/files` and `/tree`."""

    def router(self) -> APIRouter:
        """The routes."""
        router = APIRouter(route_class=JsonRoute, tags=["files"])
        files, tree = "/sandboxes/{sandbox_id}/files", "/sandboxes/{sandbox_id}/tree"
        raw: dict[str, Any] = {"response_model": None, "response_class": Response}

        def add(path: str, handler: Any, method: str, gives: dict[str, Any], takes: Any = None) -> None:
            extra = {"requestBody": body(takes)} if takes else None
            told = {**REFUSALS, 200: gives} if gives is not CONTENT else {**REFUSALS, 200: gives, 206: gives}
            router.add_api_route(path, handler, methods=[method], responses=told, openapi_extra=extra, **raw)

        add(files, self.read, "GET", CONTENT)
        add(files, self.write, "PUT", DONE, "application/octet-stream")
        add(files, self.remove, "DELETE", DONE)
        add(f"{files}/mkdir", self.mkdir, "POST", DONE)
        add(f"{files}/move", self.move, "POST", DONE)
        add(tree, self.read_tree, "GET", ARCHIVE)
        add(tree, self.write_tree, "PUT", DONE, "application/octet-stream")
        told: dict[str, Any] = {"responses": REFUSALS}
        router.add_api_route(f"{files}/stat", self.stat, methods=["GET"], response_model=FileView, **told)
        router.add_api_route(f"{files}/list", self.list, methods=["GET"], response_model=FileList, **told)
        return router

    async def _carried(
        self, request: Request, method: str, path: str, query: dict[str, str | None]
    ) -> CarriedResponse:
        call = find_call(method, path)
        assert call is not None
        entry = await self._entry(request, call.scope)
        if call.scope is not Scope.READ:
            what = query.get("path") or query.get("to") or ""
            action = f"{'tree' if path.endswith('tree') else 'file'}.{method.lower()}"
            note(self._services, request, action, entry.id, command=what.encode("utf-8", "replace").decode())
        return CarriedResponse(self._services, entry, call, agent_target(path, query))

    async def read(
        self,
        request: Request,
        sandbox_id: SandboxId,
        path: PathQuery,
        user: User = None,
        range_: Range = None,
    ) -> Response:
        """A file's bytes, or a range of them."""
        query = {"path": path_in(request), "user": user}
        return await self._carried(request, "GET", "/v1/files", query)

    async def write(
        self,
        request: Request,
        sandbox_id: SandboxId,
        path: PathQuery,
        mode: Mode = None,
        parents: bool = True,
        fsync: bool = False,
        user: User = None,
    ) -> Response:
        """Write a file, whole or not at all. The body is its bytes."""
        query = {"path": path_in(request), "mode": mode, "user": user}
        query |= {"parents": flag(parents), "fsync": flag(fsync)}
        return await self._carried(request, "PUT", "/v1/files", query)

    async def remove(
        self,
        request: Request,
        sandbox_id: SandboxId,
        path: PathQuery,
        recursive: bool = False,
        missing_ok: bool = False,
        user: User = None,
    ) -> Response:
        """Remove a file, a link or, with `recursive`, a tree. Links are never followed."""
        query = {"path": path_in(request), "user": user}
        query |= {"recursive": flag(recursive), "missing_ok": flag(missing_ok)}
        return await self._carried(request, "DELETE", "/v1/files", query)

    async def mkdir(
        self,
        request: Request,
        sandbox_id: SandboxId,
        path: PathQuery,
        mode: Mode = None,
        parents: bool = True,
        user: User = None,
    ) -> Response:
        """Make a directory; with `parents`, those that are missing too, and one that exists is fine."""
        query = {"path": path_in(request), "mode": mode, "user": user, "parents": flag(parents)}
        return await self._carried(request, "POST", "/v1/files/mkdir", query)

    async def move(
        self,
        request: Request,
        sandbox_id: SandboxId,
        source: Annotated[str, Query(alias="from", description="Absolute path.")],
        target: Annotated[str, Query(alias="to", description="Absolute path.")],
        overwrite: bool = False,
        user: User = None,
    ) -> Response:
        """Rename, or copy where the system cannot rename."""
        query = {"from": path_in(request, "from"), "to": path_in(request, "to"), "user": user}
        query |= {"overwrite": flag(overwrite)}
        return await self._carried(request, "POST", "/v1/files/move", query)

    async def read_tree(
        self, request: Request, sandbox_id: SandboxId, path: PathQuery, user: User = None
    ) -> Response:
        """A directory's content as an uncompressed tar. It comes from a hostile place: unpack it with
        care."""
        query = {"path": path_in(request), "user": user}
        return await self._carried(request, "GET", "/v1/tree", query)

    async def write_tree(
        self,
        request: Request,
        sandbox_id: SandboxId,
        path: PathQuery,
        links: Annotated[
            str, Query(pattern="^(refuse|skip)$", description="What becomes of links that lead out.")
        ] = "refuse",
        user: User = None,
    ) -> Response:
        """Unpack an uncompressed tar below a directory, which is made when missing. A member that would
        leave it is refused."""
        query = {"path": path_in(request), "user": user, "links": links}
        return await self._carried(request, "PUT", "/v1/tree", query)

    async def stat(
        self,
        request: Request,
        sandbox_id: SandboxId,
        path: PathQuery,
        follow: bool = False,
        user: User = None,
    ) -> FileView:
        """One entry; a link itself, unless `follow`."""
        entry = await self._entry(request, Scope.READ)
        query = {"path": path_in(request), "follow": flag(follow), "user": user}
        async with entry.lent() as client:
            with agent_words():
                _, said = await client.link.call("GET", "/v1/files/stat", query, repeat=True, limit=_LINE_MAX)
        return file_view(said)

    async def list(
        self,
        request: Request,
        sandbox_id: SandboxId,
        path: PathQuery,
        limit: Most = 10_000,
        user: User = None,
    ) -> FileList:
        """A directory's entries by name. One odd entry never breaks it."""
        entry = await self._entry(request, Scope.READ)
        query = {"path": path_in(request), "user": user}
        turn = self._services.admission.enter(caller(request, Scope.READ), Work.TRANSFER)
        async with turn, entry.lent() as client:
            with agent_words():
                entries, truncated = await _listed(client, query, limit)
        entries.sort(key=lambda entry: entry.name)
        return FileList(path=path, entries=tuple(entries), truncated=truncated)


async def _listed(
    client: AgentClient, query: dict[str, str | None], limit: int
) -> tuple[list[FileView], bool]:
    """As many entries as asked for, and whether there are more."""
    entries: list[FileView] = []
    rest = b""
    async with client.link.open("GET", "/v1/files/list", query) as answer:
        async for piece in answer.pieces():
            *lines, rest = (rest + piece).split(b"\n")
            if len(rest) > _LINE_MAX:
                raise NotAnAgent("no agent describes a file in so many bytes")
            for line in lines:
                if len(entries) == limit:
                    return entries, True
                if line:
                    entries.append(file_view(line))
    if rest:
        entries.append(file_view(rest))
    return entries[:limit], len(entries) > limit
