"""Orchard Env: sandboxes as a service. The SDK's names are importable from here, and nothing is imported
until it is used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orchard_env.client.answers import JobResult as JobResult
    from orchard_env.client.client import AsyncSandboxClient as AsyncSandboxClient
    from orchard_env.client.instance import AsyncSandboxInstance as AsyncSandboxInstance
    from orchard_env.client.process import AsyncContainerProcess as AsyncContainerProcess
    from orchard_env.client.sync_client import SandboxClient as SandboxClient
    from orchard_env.client.sync_instance import SandboxInstance as SandboxInstance
    from orchard_env.client.sync_process import ContainerProcess as ContainerProcess

_HOME = {
    "AsyncContainerProcess": "process",
    "AsyncSandboxClient": "client",
    "AsyncSandboxInstance": "instance",
    "ContainerProcess": "sync_process",
    "JobResult": "answers",
    "SandboxClient": "sync_client",
    "SandboxInstance": "sync_instance",
}

__all__ = [
    "AsyncContainerProcess",
    "AsyncSandboxClient",
    "AsyncSandboxInstance",
    "ContainerProcess",
    "JobResult",
    "SandboxClient",
    "SandboxInstance",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'orchard_env' has no attribute {name!r}")
    return getattr(import_module(f"orchard_env.client.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
