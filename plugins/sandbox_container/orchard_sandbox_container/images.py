"""Images: found, pulled or built, each once however many ask for it at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orchard_core import ImagePullFailed, ImageRef, SandboxUnavailable, SandboxUnsupported
from orchard_sandbox_container.build import build_image
from orchard_sandbox_container.config import ContainerConfig
from orchard_sandbox_container.engine import Engine, EngineRefused
from orchard_sandbox_container.progress import ImageProgress, OnProgress
from orchard_sandbox_container.registry import registry_headers, split_reference

_LOG = logging.getLogger("orchard_sandbox_container")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineImage:
    """An image that the engine has."""

    id: str
    """The engine's name for exactly this content."""
    user: str = ""
    """Whom its commands run as; empty: root."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Its variables."""


class Images:
    """The images of one engine."""

    def __init__(
        self, engine: Engine, config: ContainerConfig, *, on_progress: OnProgress | None = None
    ) -> None:
        self._engine = engine
        self._config = config
        self._on_progress = on_progress or _log_progress
        self._getting: dict[str, asyncio.Task[EngineImage]] = {}

    async def get(self, image: ImageRef) -> EngineImage:
        """The image a spec names. Raises ImagePullFailed, SandboxUnsupported, SandboxUnavailable,
        DiskFull."""
        wanted = self._wanted(image)
        key = str(wanted)
        if key not in self._getting:
            self._getting[key] = asyncio.create_task(self._get(wanted))
        task = self._getting[key]
        try:
            # One caller's cancellation must not end what others wait for.
            return await asyncio.shield(task)
        finally:
            if task.done() and (task.cancelled() or task.exception() is not None):
                self._getting.pop(key, None)

    def forget(self, image: ImageRef) -> None:
        """Look for it anew: somebody removed it from the engine."""
        self._getting.pop(str(self._wanted(image)), None)

    def _wanted(self, image: ImageRef) -> ImageRef:
        if image.kind != "host":
            return image
        if self._config.host_image is None:
            raise SandboxUnsupported(
                "the provider container has no image for a task that names none",
                hint="say which one stands for it: --sandbox-option host_image=python:3.12-slim",
            )
        return ImageRef(kind="oci", value=self._config.host_image)

    async def _get(self, image: ImageRef) -> EngineImage:
        if image.kind == "build":
            return await self.inspect(
                await build_image(self._engine, self._config, image.value, self._on_progress)
            )
        policy = self._config.pull
        if policy != "always":
            try:
                return await self.inspect(image.value)
            except EngineRefused as error:
                if error.status != 404:
                    raise
        if policy == "never":
            raise ImagePullFailed(
                f"the engine has no image {image.value}, and the option pull=never forbids fetching it",
                hint=f"`docker pull {image.value}` first, or leave the option out",
            )
        await self.pull(image.value)
        return await self.inspect(image.value)

    async def inspect(self, name: str) -> EngineImage:
        """What the engine knows about an image it has. Raises EngineRefused, with status 404 without it."""
        found = await self._engine.get(f"/images/{name}/json")
        config = found.get("Config") or {}
        env = dict(entry.partition("=")[::2] for entry in config.get("Env") or ())
        return EngineImage(id=found["Id"], user=config.get("User") or "", env=env)

    async def pull(self, name: str) -> None:
        """Fetch it from its registry. Raises ImagePullFailed with the engine's words, DiskFull."""
        repository, tag = split_reference(name)
        query = {"fromImage": repository, "tag": tag}
        if self._config.platform is not None:
            query["platform"] = self._config.platform
        layers: dict[str, tuple[int, int]] = {}
        try:
            async for line in self._engine.stream(
                "/images/create", query, headers=await registry_headers(repository),
                patience=self._config.pull_timeout_s,
            ):  # fmt: skip
                if "error" in line:
                    raise _not_pulled(name, str(line["error"]))
                self._on_progress(_progress(name, line, layers))
        except EngineRefused as error:
            raise _not_pulled(name, error.message.partition(": ")[2] or error.message) from error
        except SandboxUnavailable as error:
            raise ImagePullFailed(
                f"the pull of {name} broke off: {error.message}", hint=error.hint
            ) from error
        self._on_progress(ImageProgress(image=name, words="there"))


def _not_pulled(name: str, words: str) -> ImagePullFailed:
    return ImagePullFailed(
        f"the image {name} cannot be pulled: {words}",
        hint="check its name and tag, and `docker login` (or `podman login`) for a private registry",
    )


def _progress(name: str, line: dict[str, Any], layers: dict[str, tuple[int, int]]) -> ImageProgress:
    detail = line.get("progressDetail") or {}
    layer, words = str(line.get("id") or ""), str(line.get("status") or line.get("stream") or "")
    if layer and words == "Downloading" and detail.get("total"):
        layers[layer] = (int(detail.get("current") or 0), int(detail["total"]))
    elif layer in layers and words in ("Download complete", "Pull complete"):
        layers[layer] = (layers[layer][1], layers[layer][1])
    return ImageProgress(
        image=name,
        done_bytes=sum(done for done, _ in layers.values()),
        total_bytes=sum(total for _, total in layers.values()),
        words=words.strip(),
    )


def _log_progress(progress: ImageProgress) -> None:
    _LOG.debug(
        "%s: %s (%d of %d bytes)", progress.image, progress.words, progress.done_bytes, progress.total_bytes
    )
