"""The pages' addresses. Keys and numbers are all that is taken from them, never a path."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response

from orchard_core.errors import OrchardError
from orchard_core.viewer import pages
from orchard_core.viewer.compare import compare, side_room
from orchard_core.viewer.listing import Wanted, beside, listing, narrowed
from orchard_core.viewer.matrix import matrix_view
from orchard_core.viewer.parts import artifact, picture_of, text_of, token_json
from orchard_core.viewer.search.finding import Searcher
from orchard_core.viewer.sources.contract import Source
from orchard_core.viewer.sources.line import Line
from orchard_core.viewer.sources.matrix import MatrixSource
from orchard_core.viewer.sources.shelf import Shelf
from orchard_core.viewer.trace.rollout import PAGE
from orchard_core.viewer.vocabulary import Vocabulary

_GONE = "There is no such page"
Place = Annotated[int, Query(alias="from", ge=0, le=1 << 40)]
Turn = Annotated[int, Query(ge=0, le=1 << 40)]


def make_app(shelf: Shelf, searcher: Searcher, vocabulary: Vocabulary | None = None) -> FastAPI:
    """The application, to be put behind a Guard."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    views = _Views(shelf, searcher, vocabulary)
    app.add_exception_handler(OrchardError, _refused)
    app.add_exception_handler(404, _missing)
    app.add_exception_handler(RequestValidationError, _missing)
    app.add_exception_handler(405, _missing)
    for path, view in views.routes().items():
        app.add_api_route(path, view, methods=["GET", "HEAD"])
    return app


class _Views:
    """One method an address. They are plain functions, which FastAPI runs in threads."""

    def __init__(self, shelf: Shelf, searcher: Searcher, vocabulary: Vocabulary | None) -> None:
        self._shelf, self._searcher, self._vocabulary = shelf, searcher, vocabulary

    def routes(self) -> Mapping[str, Callable[..., Response]]:
        """Each address and what answers it."""
        return {
            "/": self.home,
            "/static/{name}": self.static,
            "/progress": self.progress,
            "/task": self.task,
            "/compare": self.compare,
            "/{source}/": self.list,
            "/{source}/matrix": self.matrix,
            "/{source}/{key}": self.trace,
            "/{source}/{key}/text/{ref}": self.text,
            "/{source}/{key}/image/{ref}": self.image,
            "/{source}/{key}/tokens/{number}": self.tokens,
            "/{source}/{key}/artifact/{number}": self.artifact,
            "/{source}/{key}/raw.json": self.raw,
        }

    def home(self) -> Response:
        """What is open."""
        return pages.page("home.html", shelf=self._shelf, searching=self._searcher.enabled)

    def static(self, name: str) -> Response:
        """Style and script."""
        return pages.static(name) or _absent()

    def progress(self, source: str = "") -> Response:
        """How many rollouts there are and how many the index holds, for the script."""
        found = self._shelf.source(source)
        if found is None:
            return _absent()
        held = self._searcher.search(_leaves(found), "")
        now = found.lines()
        told = {"finished": len(now.lines), "planned": now.planned, "read": held.read}
        return Response(json.dumps(told), media_type="application/json")

    def list(self, source: str, request: Request) -> Response:
        """Rollouts or rows: filters, search, order, pages."""
        found = self._shelf.source(source)
        if found is None:
            return _absent()
        wanted = Wanted.read(request.query_params)
        searched = self._searcher.search(_leaves(found), wanted.text)
        now = found.lines()
        view = listing(now.lines, wanted, searched.hits.keys())
        return pages.page(
            "list.html", source=found, now=now, view=view, found=searched, searcher=self._searcher
        )

    def matrix(self, source: str, request: Request) -> Response:
        """A matrix as a grid."""
        found = self._shelf.source(source)
        if not isinstance(found, MatrixSource):
            return _absent()
        page = Wanted.read(request.query_params).page
        return pages.page("matrix.html", source=found, view=matrix_view(found, page=page))

    def trace(self, source: str, key: str, request: Request, start: Place = 0, turn: Turn = 0) -> Response:
        """One rollout or row, turn by turn."""
        held = self._shelf.line(source, key)
        if held is None:
            return _absent()
        found, line = held
        wanted = Wanted.read(request.query_params)
        shelf = self._list_of(found, request)
        hits = self._searcher.search(_leaves(shelf), wanted.text).hits if wanted.text else {}
        before, after = beside(narrowed(shelf.lines().lines, wanted, hits.keys()), line)
        first = (turn or start) // PAGE * PAGE
        trace = found.trace(line, first=first)
        others = [other for other in self._shelf.of_task(line.task) if other.address != line.address]
        return pages.page(
            "trace.html", source=found, shelf=shelf, line=line, trace=trace, before=before, after=after,
            wanted=wanted, hit=hits.get(line.address), page_size=PAGE, others=len(others),
        )  # fmt: skip

    def _list_of(self, source: Source, request: Request) -> Source:
        """The list that the reader came from: a cell's rollouts are in its matrix's list too."""
        outer = self._shelf.source(source.key.partition(".")[0])
        return outer if request.query_params.get("in") == "matrix" and outer is not None else source

    def task(self, id: str = "", a: str = "") -> Response:  # noqa: A002 - as it is called in addresses
        """Every rollout and row of one task, to choose two."""
        lines = self._shelf.of_task(id)
        if not lines:
            return _absent()
        first = next((line for line in lines if line.address == a), lines[0])
        other = next((line for line in lines if line.harness != first.harness), None)
        other = other or next((line for line in lines if line.address != first.address), first)
        return pages.page(
            "task.html", task=id, lines=lines[:500], first=first, other=other, left=len(lines) - 500,
            places=self._places(lines[:500]),
        )  # fmt: skip

    def _places(self, lines: Sequence[Line]) -> Mapping[str, str]:
        """What to call where the lines lie, by their sources; nothing when they all lie in one."""
        outer = {line.source: line.source.partition(".")[0] for line in lines}
        found = {key: self._shelf.source(key) for key in set(outer.values())}
        if len(found) < 2:
            return {}
        words = {
            key: f"{place.kind} {'/'.join(place.root.resolve().parts[-2:])}"
            for key, place in found.items()
            if place is not None
        }
        return {source: words.get(key, "") for source, key in outer.items()}

    def compare(self, a: str = "", b: str = "") -> Response:
        """Two of them side by side."""
        left, right = self._at(a), self._at(b)
        if left is None or right is None:
            return _absent()
        traces = [found.trace(line, room=side_room(), samples=False) for found, line in (left, right)]
        view = compare(*traces)
        lines = (left[1], right[1])
        return pages.page(
            "compare.html", left=left[1], right=right[1], traces=traces, view=view, places=self._places(lines)
        )

    def _at(self, address: str) -> tuple[Source, Line] | None:
        parts = address.strip("/").split("/")
        return self._shelf.line(*parts) if len(parts) == 2 else None

    def text(self, source: str, key: str, ref: str, start: Place = 0) -> Response:
        """A whole text, a stretch at a time."""
        held = self._shelf.line(source, key)
        return (text_of(*held, ref, start) if held else None) or _absent()

    def image(self, source: str, key: str, ref: str) -> Response:
        """A picture of a message."""
        held = self._shelf.line(source, key)
        return (picture_of(*held, ref) if held else None) or _absent()

    def tokens(self, source: str, key: str, number: int) -> Response:
        """The sampled tokens of a turn."""
        held = self._shelf.line(source, key)
        told = held[0].tokens(held[1], number) if held else ()
        return token_json(told, self._vocabulary) if told else _absent()

    def artifact(self, source: str, key: str, number: int) -> Response:
        """Something that was kept of a rollout, as a download."""
        held = self._shelf.line(source, key)
        return (artifact(*held, number) if held else None) or _absent()

    def raw(self, source: str, key: str) -> Response:
        """The whole record, as a download."""
        held = self._shelf.line(source, key)
        if held is None:
            return _absent()
        headers = {"content-disposition": f'attachment; filename="{source}-{key.lstrip("~")}.json"'}
        return Response(held[0].raw(held[1]), media_type="application/json", headers=headers)


def _leaves(source: Source) -> list[Source]:
    if isinstance(source, MatrixSource):
        return [cell.run for cell in source.cells() if cell.run is not None]
    return [source]


def _absent() -> Response:
    return pages.message(_GONE, "It may have been in another viewer, or the list has changed.", status=404)


async def _missing(request: Request, error: Exception) -> Response:
    return _absent()


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, OrchardError)
    return pages.message("This cannot be read", error.message, status=500, hint=error.hint)
