"""References to images, and the credentials that `docker login` and `podman login` have left."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_HELPER = re.compile(r"[A-Za-z0-9._-]+")
_HELPER_S = 20.0
_HUB = "https://index.docker.io/v1/"


def split_reference(name: str) -> tuple[str, str]:
    """Repository and tag or digest; `latest` when it has neither."""
    repository, found, digest = name.partition("@")
    if found:
        return repository, digest
    head, colon, tag = name.rpartition(":")
    return (head, tag) if colon and "/" not in tag else (name, "latest")


def registry_of(repository: str) -> str:
    """The registry's key in a credentials file."""
    first, slash, _ = repository.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else _HUB


async def registry_headers(repository: str) -> dict[str, str]:
    """What a pull sends to the engine as proof of who asks; empty when nobody has logged in."""
    registry = registry_of(repository)
    for path in _files():
        found = await _from_file(path, registry)
        if found is not None:
            sent = json.dumps({**found, "serveraddress": registry}).encode()
            return {"X-Registry-Auth": base64.urlsafe_b64encode(sent).decode()}
    return {}


def _files() -> list[Path]:
    home, runtime = Path("~").expanduser(), os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}"
    docker = os.environ.get("DOCKER_CONFIG")
    return [
        Path(docker) / "config.json" if docker else home / ".docker/config.json",
        Path(os.environ.get("REGISTRY_AUTH_FILE") or Path(runtime) / "containers/auth.json"),
    ]


async def _from_file(path: Path, registry: str) -> dict[str, str] | None:
    try:
        written = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    helper = (written.get("credHelpers") or {}).get(registry) or written.get("credsStore")
    if helper and _HELPER.fullmatch(helper):
        found = await _from_helper(helper, registry)
        if found is not None:
            return found
    entry = (written.get("auths") or {}).get(registry) or {}
    return _decoded(entry)


def _decoded(entry: Mapping[str, Any]) -> dict[str, str] | None:
    if entry.get("identitytoken"):
        return {"identitytoken": str(entry["identitytoken"])}
    try:
        user, colon, password = base64.b64decode(entry.get("auth") or "").decode().partition(":")
    except ValueError:
        return None
    return {"username": user, "password": password} if colon else None


async def _from_helper(helper: str, registry: str) -> dict[str, str] | None:
    """What `docker-credential-HELPER get` says; None when it is not there, hangs or knows nothing."""
    try:
        process = await asyncio.create_subprocess_exec(
            f"docker-credential-{helper}", "get", stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
    except OSError:
        return None
    try:
        async with asyncio.timeout(_HELPER_S):
            out, _ = await process.communicate(registry.encode())
        found = json.loads(out) if process.returncode == 0 else {}
    except (TimeoutError, ValueError):
        return None
    finally:
        if process.returncode is None:
            process.kill()
    if not found.get("Secret"):
        return None
    if found.get("Username") == "<token>":
        return {"identitytoken": str(found["Secret"])}
    return {"username": str(found.get("Username") or ""), "password": str(found["Secret"])}
