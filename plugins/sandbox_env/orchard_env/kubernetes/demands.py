"""What a pod can give of a spec: everything, or a refusal before anything starts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from orchard_core import ConfigError, NetworkMode, SandboxSpec, SandboxUnsupported
from orchard_env.kubernetes.config import KubernetesConfig
from orchard_env.kubernetes.labels import spec_annotation, spec_labels

_ENV_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_NUMERIC = re.compile(r"(\d{1,10})(?::(\d{1,10}))?")
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}")
_IMAGE = re.compile(r"[a-zA-Z0-9][^\s]{0,511}")
_ID_MAX = 2**31 - 1
_AMOUNT_MAX = 2**40


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Whom the agent and the commands run as."""

    uid: int | None = None
    """The container's user; None: the image's."""
    gid: int | None = None
    """Its group; None: the image's."""
    drop_to: str | None = None
    """A name that the agent, as root, looks up inside; None: commands run as the agent does."""


def check_demands(spec: SandboxSpec, config: KubernetesConfig) -> None:
    """Raises SandboxUnsupported for whatever a pod cannot give."""
    if spec.image.kind == "oci" and not _IMAGE.fullmatch(spec.image.value):
        raise SandboxUnsupported(f"{spec.image.value!r} is no image reference", hint="write oci:NAME:TAG")
    refused = {
        "mounts": (bool(spec.mounts), "a pod has no files of the driver's machine: upload them instead"),
        "pids": (
            spec.pids is not None,
            "the limit of a pod's processes is its node's (the kubelet's podPidsLimit)",
        ),
        "the network `host`": (
            spec.network.mode is NetworkMode.HOST,
            "a pod in its node's network would reach everything there",
        ),
        "a named user": (
            identity(spec.user).drop_to is not None
            and (config.run_as_non_root or not {"SETUID", "SETGID"} <= {*config.capabilities}),
            "only root can look a name up and become it: give uid or uid:gid",
        ),
        "root": (
            config.run_as_non_root and identity(spec.user).uid == 0,
            "the option run_as_non_root of this provider forbids it",
        ),
    }
    for what, (asked, why) in refused.items():
        if asked:
            raise SandboxUnsupported(f"the provider kubernetes cannot give {what}", hint=why)
    check_positive(spec)
    check_environment(spec.env)
    check_environment(config.env)
    spec_labels(spec)
    spec_annotation(spec)


def check_positive(spec: SandboxSpec) -> None:
    """Raises SandboxUnsupported for an amount that is none."""
    for name, amount in (("cpu", spec.cpu), ("memory_mb", spec.memory_mb), ("disk_mb", spec.disk_mb)):
        if amount is not None and not 0 < amount < _AMOUNT_MAX:
            raise SandboxUnsupported(f"{name}={amount:g} is no amount", hint="give a positive number")


def check_environment(env: Mapping[str, str]) -> None:
    """Raises SandboxUnsupported for what a pod's environment cannot hold: odd names, what is no text."""
    for name, value in env.items():
        if not _ENV_NAME.fullmatch(name) or "\0" in value or not _is_text(value):
            raise SandboxUnsupported(
                f"the environment variable {name!r} or its value cannot be put into a pod",
                hint="names are letters, digits, -, _ and .; values are UTF-8. `exec(env=...)` takes any",
            )


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def identity(user: str | None) -> Identity:
    """Read a spec's user. Raises SandboxUnsupported for what is neither a name nor a number."""
    if user is None:
        return Identity()
    numeric = _NUMERIC.fullmatch(user)
    if numeric:
        uid, gid = int(numeric[1]), int(numeric[2] or numeric[1])
        if max(uid, gid) <= _ID_MAX:
            return Identity(uid=uid, gid=gid)
    if not _NAME.fullmatch(user):
        raise SandboxUnsupported(f"{user!r} is no user", hint="give a name of the image's, uid or uid:gid")
    return Identity(uid=0, gid=0, drop_to=user)


def check_config(config: KubernetesConfig, version: tuple[int, int]) -> None:
    """Raises ConfigError for an option that the server is too old for."""
    if config.injection == "image-volume" and version < (1, 33):
        raise ConfigError(
            f"the server is {version[0]}.{version[1]}, and image volumes need 1.33",
            hint="leave the option `injection` at `copy`",
        )
