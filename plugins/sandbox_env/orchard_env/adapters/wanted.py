"""What the adapters ask a service for, in its own terms."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Iterator

from orchard_core import (
    Capabilities,
    ConfigError,
    FileDenied,
    FileMissing,
    ImageRef,
    IsADirectory,
    NotADirectory,
    SandboxSpec,
)
from orchard_env.client.client import AsyncSandboxClient
from orchard_env.remote.config import RemoteConfig
from orchard_env.remote.provider import RemoteProvider

_LOG = logging.getLogger("orchard.env")
_KINDS = ("oci:", "rootfs:", "build:")


def provider_for(framework: str, *, heartbeat: bool = True) -> RemoteProvider:
    """The service that SANDBOX_BASE_URL, SANDBOX_API_KEY and SANDBOX_CA_FILE name; what it makes is labelled
    as that framework's. Raises ConfigError."""
    trusted = os.environ.get("SANDBOX_CA_FILE") or ""
    return RemoteProvider(RemoteConfig(labels={"made-by": framework}, heartbeat=heartbeat, ca_file=trusted))


def image_of(name: str) -> ImageRef:
    """`host`, an image of a registry by its plain name, or a written form such as `rootfs:PATH`."""
    return ImageRef.parse(name if name == "host" or name.startswith(_KINDS) else f"oci:{name}")


async def default_image(provider: RemoteProvider, how: str) -> ImageRef:
    """For who names none: SANDBOX_IMAGE, or the service's own machine where it gives that. `how` says how
    one is named. Raises ConfigError."""
    named = os.environ.get("SANDBOX_IMAGE")
    if named:
        return image_of(named)
    if "host" in (await provider.capabilities()).images:
        return ImageRef(kind="host")
    raise ConfigError(
        "no image is named, and the service has none of its own", hint=f"{how}, or SANDBOX_IMAGE"
    )


async def delete_made_by(framework: str, only: str | None = None) -> list[str]:
    """Ids of the sandboxes of this key that were deleted: all that the framework made, or one of them."""
    provider = provider_for(framework, heartbeat=False)
    try:
        found = [one.id for one in await provider.standing() if only in (None, one.id)]
    finally:
        await provider.release()
    async with AsyncSandboxClient(auto_cleanup=False) as client:
        await asyncio.gather(*(client.delete_sandbox(sandbox_id) for sandbox_id in found))
    return found


def enforced(spec: SandboxSpec, able: Capabilities) -> SandboxSpec:
    """The spec without limits that the provider cannot enforce, which are told in the log: a framework's
    defaults are wishes."""
    asked = {"cpu": spec.cpu, "memory": spec.memory_mb, "disk": spec.disk_mb}
    fields = {"cpu": "cpu", "memory": "memory_mb", "disk": "disk_mb"}
    lost = [what for what, value in asked.items() if value is not None and what not in able.limits]
    if lost:
        _LOG.warning("nothing enforces limits of %s here; they are left out", " and ".join(lost))
    return spec.model_copy(update={fields[what]: None for what in lost})


@contextlib.contextmanager
def as_os_errors(file: str) -> Iterator[None]:
    """Errors of files in a sandbox as Python's own of files on this machine."""
    try:
        yield
    except (FileMissing, NotADirectory) as error:
        raise FileNotFoundError(f"{file}: {error}") from error
    except FileDenied as error:
        raise PermissionError(f"{file}: {error}") from error
    except IsADirectory as error:
        raise IsADirectoryError(f"{file} is a directory: {error}") from error
