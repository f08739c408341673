"""`build:DIR`: an image from a directory with a Dockerfile, built once for what the directory holds."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import tarfile
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO

from orchard_core import SandboxCreateFailed, SandboxUnsupported
from orchard_sandbox_container.config import ContainerConfig
from orchard_sandbox_container.engine import Engine, EngineRefused
from orchard_sandbox_container.progress import ImageProgress, OnProgress

_PIECE = 1 << 20
_WORDS = 12


async def build_image(
    engine: Engine, config: ContainerConfig, directory: str, on_progress: OnProgress
) -> str:
    """The name of the image, which is built unless the same content was before. Raises SandboxUnsupported for
    a directory without a Dockerfile, SandboxCreateFailed with the engine's last words, DiskFull."""
    path = Path(directory).absolute()
    if not any((path / name).is_file() for name in ("Dockerfile", "Containerfile")):
        raise SandboxUnsupported(
            f"{path} has no Dockerfile", hint="an image build:DIR is built from DIR/Dockerfile"
        )
    with tempfile.TemporaryFile(prefix="orchard-build-") as context:
        digest = await asyncio.to_thread(_pack, path, context)
        name = f"localhost/orchard-build:{digest[:32]}"
        with contextlib.suppress(EngineRefused):
            await engine.get(f"/images/{name}/json")
            return name
        query = {"t": name, "rm": "1", "forcerm": "1", "dockerfile": _dockerfile(path)}
        if config.platform is not None:
            query["platform"] = config.platform
        said: list[str] = []
        async for line in engine.stream(
            "/build", query, data=_pieces(context), patience=config.pull_timeout_s
        ):
            words = str(line.get("stream") or line.get("status") or line.get("error") or "").strip()
            said.append(words)
            if "error" in line or "errorDetail" in line:
                raise SandboxCreateFailed(
                    f"the image of {path} cannot be built: " + "\n".join(filter(None, said[-_WORDS:])),
                    hint=f"`docker build {path}` shows the whole of it",
                )
            on_progress(ImageProgress(image=f"build:{directory}", words=words))
    return name


def _dockerfile(path: Path) -> str:
    return "Dockerfile" if (path / "Dockerfile").is_file() else "Containerfile"


def _pack(path: Path, context: IO[bytes]) -> str:
    """Write the directory as a tar that depends on its content alone, and give its hash. Links stay links."""
    with tarfile.open(fileobj=context, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for folder, folders, files in os.walk(path):
            folders.sort()
            for name in sorted([*files, *folders]):
                each = Path(folder) / name
                archive.add(each, arcname=str(each.relative_to(path)), recursive=False, filter=_plain)
    context.seek(0)
    digest = hashlib.sha256()
    while piece := context.read(_PIECE):
        digest.update(piece)
    return digest.hexdigest()


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Owners and times are this machine's matter; sockets and devices are no part of an image."""
    if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    return member


async def _pieces(context: IO[bytes]) -> AsyncIterator[bytes]:
    context.seek(0)
    while piece := await asyncio.to_thread(context.read, _PIECE):
        yield piece
