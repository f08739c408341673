"""A v1 request as a SandboxSpec, and a spec as v1 tells it."""

from __future__ import annotations

import math
import re
from pathlib import PurePosixPath

from orchard_core import Capabilities, ImageRef, Network, NetworkMode, SandboxSpec
from orchard_env.service.entry import Entry, Status
from orchard_env.service.faults import RequestInvalid
from orchard_env.service.settings import ServiceSettings
from orchard_env.service.v1.models import CreateSandbox

OURS = "orchard.dev/"
"""Labels that begin so are not the clients'."""
_CPU, _MEMORY, _TIMEOUT = OURS + "v1-cpu", OURS + "v1-memory", OURS + "v1-timeout"
_ASKED, _FALLBACK = OURS + "image-asked", OURS + "image-fallback"
_ISOLATED = OURS + "isolated"
_TOLD = frozenset({_ASKED, _FALLBACK, _ISOLATED})
"""Labels of ours that answers show."""

_UNITS = {"": 1, "k": 1000, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30,
          "Ti": 1 << 40}  # fmt: skip
_QUANTITY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*(k|K|M|G|T|Ki|Mi|Gi|Ti|m)?B?")


def spec_of(asked: CreateSandbox, settings: ServiceSettings, able: Capabilities) -> SandboxSpec:
    """What to create. Raises RequestInvalid for what has no meaning or is not allowed."""
    image = image_of(asked.image, settings, able)
    labels = _labels(asked)
    if image.kind == "host" and asked.image != "host":
        labels |= {_ASKED: asked.image, _FALLBACK: "host"}
    if not able.isolated:
        labels[_ISOLATED] = "false"
    return SandboxSpec(
        name=asked.sandbox_id,
        image=image,
        cpu=None if asked.cpu is None else cores(asked.cpu),
        memory_mb=None if asked.memory is None else mebibytes(asked.memory),
        network=Network(mode=NetworkMode.NONE if asked.block_network else _open(able)),
        ttl_s=asked.ttl or settings.ttl_s,
        idle_ttl_s=asked.idle_ttl,
        env=asked.env or {},
        labels=labels,
    )


def _open(able: Capabilities) -> NetworkMode:
    """Any public address; the host's own network where nothing is isolated anyway."""
    return NetworkMode.OPEN if able.isolated else NetworkMode.HOST


def _labels(asked: CreateSandbox) -> dict[str, str]:
    given = asked.labels or {}
    if any(name.startswith(OURS) for name in given):
        raise RequestInvalid(f"labels: names that begin with {OURS} are the service's", hint="rename them")
    told = {_CPU: asked.cpu, _MEMORY: asked.memory, _TIMEOUT: asked.timeout}
    return given | {name: _plain(value) for name, value in told.items() if value is not None}


def _plain(value: str | float) -> str:
    return value.strip() if isinstance(value, str) else f"{value:g}"


def image_of(text: str, settings: ServiceSettings, able: Capabilities) -> ImageRef:
    """`host`, `rootfs:PATH` or a registry's reference. Raises RequestInvalid for a root outside the allowed
    directories, and for an image that the provider cannot run, unless the operator allows the fallback."""
    if text == "host":
        return ImageRef(kind="host")
    if text.startswith("rootfs:"):
        return _rootfs(text.removeprefix("rootfs:"), settings)
    if text.startswith("build:"):
        raise RequestInvalid("image: a service builds no images", hint="build it, push it, and name it here")
    if "oci" in able.images:
        return ImageRef(kind="oci", value=text.removeprefix("oci:"))
    if settings.image_fallback:
        return ImageRef(kind="host")
    raise RequestInvalid(
        f"image: this service's provider runs no registry images such as {text[:80]!r}",
        hint="ask for the image `host`; the operator may allow a fallback with --image-fallback",
    )


def _rootfs(path: str, settings: ServiceSettings) -> ImageRef:
    root = PurePosixPath(path)
    allowed = [PurePosixPath(directory) for directory in settings.rootfs_allowed]
    if not root.is_absolute() or ".." in root.parts or not any(root.is_relative_to(each) for each in allowed):
        raise RequestInvalid(
            "image: this directory of the service's machine is not for clients",
            hint="the operator names directories under `rootfs_allowed` in the service's --config",
        )
    return ImageRef(kind="rootfs", value=str(root))


def cores(value: str | float) -> float:
    """`2000m` is 2.0. Raises RequestInvalid."""
    number, unit = _quantity("cpu", value)
    if unit not in ("", "m"):
        raise _odd("cpu", value)
    found = number / 1000 if unit == "m" else number
    if not 0 < found <= 4096:
        raise _odd("cpu", value)
    return found


def mebibytes(value: str | float) -> int:
    """`16Gi` is 16384; a plain number is bytes. Raises RequestInvalid."""
    number, unit = _quantity("memory", value)
    factor = _UNITS.get("k" if unit == "K" else unit)
    if factor is None or not 0 < number * factor <= 1 << 50:
        raise _odd("memory", value)
    return math.ceil(number * factor / (1 << 20))


def _quantity(name: str, value: str | float) -> tuple[float, str]:
    if not isinstance(value, str):
        return (value, "") if math.isfinite(value) else _refuse(name, value)
    found = _QUANTITY.fullmatch(value.strip())
    return (float(found[1]), found[2] or "") if found else _refuse(name, value)


def _refuse(name: str, value: str | float) -> tuple[float, str]:
    raise _odd(name, value)


def _odd(name: str, value: str | float) -> RequestInvalid:
    example = "4, 0.5 or 2000m" if name == "cpu" else "16Gi, 512Mi or a number of bytes"
    return RequestInvalid(f"{name}: {str(value)[:40]!r} is no quantity", hint=f"write {example}")


def told(entry: Entry, settings: ServiceSettings) -> dict[str, object]:
    """The sandbox as v1 answers it: what was asked for, as it was written."""
    spec, labels, fault = entry.spec, entry.spec.labels, entry.fault
    status = entry.status
    body: dict[str, object] = {
        "sandbox_id": entry.id,
        "namespace": settings.namespace,
        "image": labels.get(_ASKED) or _image_text(spec.image),
        "block_network": spec.network.mode is NetworkMode.NONE,
        "cpu": labels.get(_CPU) or (None if spec.cpu is None else f"{spec.cpu:g}"),
        "memory": labels.get(_MEMORY) or (None if spec.memory_mb is None else f"{spec.memory_mb}Mi"),
        "timeout": float(labels[_TIMEOUT]) if _TIMEOUT in labels else None,
        "status": status.value,
        "labels": {name: value for name, value in labels.items() if _shown(name)},
    }
    if status is Status.FAILED and fault is not None:
        body |= {"error": fault.message, "error_type": type(fault).__name__}
    return body


def _shown(label: str) -> bool:
    return label in _TOLD or not label.startswith(OURS)


def _image_text(image: ImageRef) -> str:
    return image.value if image.kind == "oci" else str(image)
