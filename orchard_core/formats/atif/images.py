"""Pictures of trajectories: files beside them in ATIF, data URLs in rows."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

from orchard_core.errors import FormatUnsupported
from orchard_core.formats.conversation import Fields
from orchard_core.formats.limits import FIELD_BYTES
from orchard_core.formats.published.beside import image_bytes, image_url

_ENDINGS = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}


def media(step: Fields) -> Iterator[Fields]:
    """The sources of all pictures of a step."""
    observation = step.get("observation")
    results = observation.get("results") if isinstance(observation, dict) else None
    contents = [
        step.get("message"),
        *(result.get("content") for result in results or () if isinstance(result, dict)),
    ]
    for content in contents:
        for part in content if isinstance(content, list) else ():
            if (
                isinstance(part, dict)
                and part.get("type") == "image"
                and isinstance(part.get("source"), dict)
            ):
                yield part["source"]


def put_out(step: Fields, save: Callable[[str, bytes], str] | None, row: str) -> None:
    """Replace data URLs in a step by the paths that `save(name, bytes)` gives. Raises FormatUnsupported."""
    for source in media(step):
        if not source["path"].startswith("data:"):
            continue
        raw = image_bytes(source["path"])["bytes"]
        if save is None or raw is None or not source["path"].startswith(f"data:{source['media_type']};"):
            raise FormatUnsupported(
                f"row {row} holds a picture, which ATIF keeps as a PNG, JPEG, GIF or WebP file beside it",
                hint="write to a directory: --out NAME without an ending",
            )
        name = f"{hashlib.sha256(raw).hexdigest()}.{_ENDINGS[source['media_type']]}"
        source["path"] = save(name, raw)


def taken_in(step: Fields, folder: Path, root: Path) -> None:
    """Replace paths of pictures below `root` by data URLs; `folder` is where the trajectory lies. Any other
    path stays a path: a file of somebody else's must not make us read the rest of this machine."""
    for source in media(step):
        path = source.get("path")
        if not isinstance(path, str) or "://" in path or path.startswith(("data:", "/")) or "\0" in path:
            continue
        try:
            file = (folder / path).resolve()
            if (
                not file.is_relative_to(root.resolve())
                or not file.is_file()
                or file.stat().st_size > FIELD_BYTES
            ):
                continue
            raw = file.read_bytes()
        except OSError:
            continue
        url = image_url({"bytes": raw}, "")
        if (
            image_bytes(url)["bytes"] == raw
            and base64.b64decode(url.partition(",")[2]) == raw
            and _is_image(raw)
        ):
            source["path"] = url


def _is_image(raw: bytes) -> bool:
    return raw.startswith((b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF"))
