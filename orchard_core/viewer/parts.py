"""What pages fetch when it is asked for: whole texts, pictures, tokens, artifacts."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Sequence

from fastapi.responses import Response, StreamingResponse

from orchard_core.viewer.image import from_data_url
from orchard_core.viewer.sources.contract import Source
from orchard_core.viewer.sources.line import Line
from orchard_core.viewer.sources.run import RunSource
from orchard_core.viewer.trace.tokens import SampledToken
from orchard_core.viewer.visible import plain
from orchard_core.viewer.vocabulary import Vocabulary

STRETCH = 200_000
"""Characters of one answer."""
_PIECE = 1 << 20


def text_of(source: Source, line: Line, ref: str, start: int) -> Response | None:
    """A stretch of a piece from character `start` on, hidden characters in words; a header says where the
    next begins."""
    piece = source.piece(line, ref)
    if piece is None:
        return None
    stretch = piece.text[start : start + STRETCH]
    left = max(0, len(piece.text) - start - len(stretch))
    headers = {"orchard-next": str(start + len(stretch)), "orchard-left": str(left)}
    body = plain(stretch).encode("utf-8", "replace")
    return Response(body, media_type="text/plain; charset=utf-8", headers=headers)


def picture_of(source: Source, line: Line, ref: str) -> Response | None:
    """A raster image that a message holds; nothing else is ever sent as one."""
    piece = source.piece(line, ref)
    if piece is None or piece.kind != "image":
        return None
    found = from_data_url(piece.text)
    if isinstance(found, str):
        return None
    headers = {"cache-control": "private, max-age=3600"}
    return Response(found.data, media_type=found.media_type, headers=headers)


def token_json(tokens: Sequence[SampledToken], vocabulary: Vocabulary | None) -> Response:
    """Ids, probabilities, reasons and, where they are known, texts, as lists of the same length."""
    told = {
        "text": [plain(vocabulary.text(token.id)) for token in tokens] if vocabulary else [],
        "ids": [token.id for token in tokens],
        "p": [None if token.probability is None else round(token.probability, 5) for token in tokens],
        "why": [token.why for token in tokens],
    }
    return Response(json.dumps(told), media_type="application/json")


def artifact(source: Source, line: Line, number: int) -> Response | None:
    """A blob of a run, which the browser is told to save and not to look into."""
    if not isinstance(source, RunSource):
        return None
    kept = source.read(line.id).rollout.artifacts
    if not 0 <= number < len(kept):
        return None
    path = source.run.blobs.path(kept[number].sha256)
    try:
        held = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    told = os.fstat(held)
    if not stat.S_ISREG(told.st_mode):
        os.close(held)
        return None
    headers = {
        "content-disposition": f'attachment; filename="artifact-{number}"',
        "content-length": str(told.st_size),
    }
    return StreamingResponse(
        _read(held, told.st_size), media_type="application/octet-stream", headers=headers
    )


def _read(held: int, size: int) -> Iterator[bytes]:
    with os.fdopen(held, "rb") as stream:
        while size > 0 and (piece := stream.read(min(_PIECE, size))):
            size -= len(piece)
            yield piece
