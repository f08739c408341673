"""Files of v1, whole in one answer; /v2 streams them."""

from __future__ import annotations

import asyncio
import base64
import binascii
import posixpath
from contextlib import aclosing
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import Response

from orchard_core import AgentClient, FileEntry, Sandbox, SandboxError
from orchard_env.service.agent_words import agent_words
from orchard_env.service.faults import BodyTooLarge, RequestInvalid
from orchard_env.service.http import answer, caller, read_json
from orchard_env.service.noting import note
from orchard_env.service.reach import reach
from orchard_env.service.seams import Scope, Work
from orchard_env.service.services import Services
from orchard_env.service.v1.models import WriteFile

_LINKS_AT_ONCE = 16


class FileRoutes:
    """Handlers over the parts of one service."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._settings = services.settings

    async def write(self, request: Request) -> Response:
        """Write a file whole or not at all, with its parents."""
        entry = await reach(self._services, request, Scope.USE)
        async with self._services.admission.enter(caller(request, Scope.USE), Work.TRANSFER):
            asked = await read_json(request, WriteFile, self._settings.body_mb << 20)
            data = _decoded(asked.content)
            sandbox = await entry.ready(self._settings.wait_s)
            path = _inside(sandbox, asked.path)
            with agent_words():
                await sandbox.write(path, data, mode=int(asked.mode, 8) if asked.mode else 0o644)
        note(self._services, request, "file.write", entry.id)
        return answer({"success": True, "path": asked.path, "size": len(data)})

    async def read(self, request: Request) -> Response:
        """A file's content."""
        entry = await reach(self._services, request, Scope.READ)
        asked = _asked(request)
        async with self._services.admission.enter(caller(request, Scope.READ), Work.TRANSFER):
            sandbox = await entry.ready(self._settings.wait_s)
            with agent_words():
                data = await self._whole(sandbox, _inside(sandbox, asked))
        content = base64.b64encode(data).decode()
        return answer({"path": asked, "content": content, "size": len(data)})

    async def _whole(self, sandbox: Sandbox, path: str) -> bytes:
        limit = self._settings.file_mb << 20
        data = bytearray()
        async with aclosing(sandbox.read(path)) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                data += piece
                if len(data) > limit:
                    raise BodyTooLarge(
                        f"{path} is over {self._settings.file_mb} MiB",
                        hint="stream it: GET /v2/sandboxes/ID/files?path=...",
                    )
        return bytes(data)

    async def list(self, request: Request) -> Response:
        """A directory's entries."""
        entry = await reach(self._services, request, Scope.READ)
        asked = request.query_params.get("path") or "/workspace"
        sandbox = await entry.ready(self._settings.wait_s)
        path = _inside(sandbox, asked)
        with agent_words():
            async with entry.lent() as client:
                found = await client.list(path)
                led = await _led(client, found)
        return answer({"path": asked, "files": [_listed(item, led.get(item.path)) for item in found]})


def _asked(request: Request) -> str:
    path = request.query_params.get("path")
    if not path:
        raise RequestInvalid("path: missing", hint="write ?path=/workspace/file")
    return path


def _inside(sandbox: Sandbox, path: str) -> str:
    if "\0" in path:
        raise RequestInvalid("path: no file's name has a NUL byte in it")
    return posixpath.join(sandbox.spec.workdir, path)


def _decoded(content: str) -> bytes:
    try:
        return base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError) as error:
        raise RequestInvalid(
            f"content: not base64: {error}", hint="encode the file's bytes as base64"
        ) from None


async def _led(client: AgentClient, found: list[FileEntry]) -> dict[str, FileEntry]:
    """What the links among them lead to; a link that leads nowhere is left out."""
    gate = asyncio.Semaphore(_LINKS_AT_ONCE)

    async def follow(path: str) -> FileEntry | None:
        async with gate:
            try:
                return await client.stat(path, follow=True)
            except SandboxError:
                return None

    links = [item.path for item in found if item.kind == "symlink" and not item.broken]
    ends = await asyncio.gather(*map(follow, links))
    return {path: end for path, end in zip(links, ends, strict=True) if end is not None}


def _listed(item: FileEntry, led: FileEntry | None) -> dict[str, object]:
    end = led or item
    listed: dict[str, object] = {
        "name": _shown(item.name),
        "type": "directory" if end.kind == "directory" else "file",
        "size": end.size,
        "modified": _iso(item.modified),
    }
    if listed["name"] != item.name:
        listed["name_b64"] = base64.b64encode(item.name.encode("utf-8", "surrogateescape")).decode()
    if item.link is not None:
        listed["link"] = _shown(item.link)
    return listed


def _shown(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _iso(moment: float) -> str:
    try:
        return datetime.fromtimestamp(moment, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC).isoformat()  # a hostile program may set any time
